// Package standalone makes a whole gateway out of a control plane: it starts,
// watches and stops the Envoy beside it, and holds the demo.
//
// Invariants: the Envoy never outlives the program, whichever way that ends;
// what Envoy writes to its standard output (the access log) is passed on
// untouched, and what it logs becomes records of the program's own log.
package standalone
