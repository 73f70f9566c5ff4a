// Package suggest finds the known name that is closest to an unknown one.
package suggest
