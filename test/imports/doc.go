// Package imports compares .golangci.yml with the table "Packages" of
// ARCHITECTURE.md, which says what each package may import.
package imports
