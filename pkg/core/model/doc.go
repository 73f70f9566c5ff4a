// Package model holds the domain types of Gatehouse under the names of the
// specification, their validation, and the error type that every layer uses.
//
// Invariants: an object is never modified once it has been passed on, so
// comparing pointers shows whether it changed; a name is an identity and never
// changes.
package model
