// Package kong translates a declarative file of Kong Gateway, as decK writes it, to a configuration document.
//
// Invariants: it reads only what the caller passes in; the same file gives the same document; what is not translated is
// in the notes, with its line; a route whose access Kong decides in a way that is not translated answers 503; no note has
// a secret.
package kong
