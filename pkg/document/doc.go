// Package document reads, writes and applies the configuration document: the
// whole configuration, or a part of it, as one YAML or JSON text.
//
// Invariants: what Write writes, Parse reads, and Apply makes of it on an empty
// store what was there; the same configuration gives the same bytes; a document
// is applied as a whole or not at all, and every error names the line; nothing
// is written in the clear that is stored sealed.
package document
