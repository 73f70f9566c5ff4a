// Package suggest finds the name that was probably meant where an unknown one
// was given.
//
// It imports the standard library only.
package suggest
