// Package document reads, writes and applies the configuration document: the
// whole configuration, or a part of it, as one YAML or JSON text.
//
// Invariants: Parse reads what Write writes, and Apply on an empty store
// restores the configuration; the same configuration gives the same bytes; a
// document is applied as a whole or not at all, and every error names the line;
// nothing that is stored sealed is written in the clear.
package document
