// Package imports compares .golangci.yml with the table of
// docs/internals/packages.md, which lists what each package may import.
package imports
