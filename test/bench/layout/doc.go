// Package layout is the configuration that both sides of the benchmark hold:
// routes spread over services, ten under each host, every route with its own
// upstream. It does not define how a side stores or serves them.
//
// Invariant: the same arguments give the same routes, so that the two Envoys
// can be compared.
package layout
