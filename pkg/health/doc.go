// Package health decides what is said of an upstream's condition, from what is
// known of it: the load reports of Envoys, and what the Envoy beside the program
// says of itself.
//
// Invariants: it is pure; what nobody has checked is never called healthy; a
// reason is named only where Envoy has counted it; failures are forgotten after
// a while, and at once when requests succeed again.
package health
