// Package suggest finds the name that was probably meant where an unknown one
// was given.
package suggest
