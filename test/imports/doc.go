// Package imports compares .golangci.yml with the table "Packages" of
// ARCHITECTURE.md, which lists what each package may import.
package imports
