// Package layout is the configuration that both sides of the benchmark hold:
// routes spread over services, ten under each host, every route with an
// upstream of its own. It says nothing about how a side stores or serves it.
//
// Invariant: the same arguments give the same routes, so that the two Envoys
// can be held against each other.
package layout
