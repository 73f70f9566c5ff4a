// Package model holds the domain types of Gatehouse under the names that the
// specification gives them, their validation, and the error type that every
// layer speaks.
//
// Invariants: an object is never modified once it has been handed on, so a
// comparison of pointers answers "has this changed?"; a name is an identity
// and never changes.
package model
