// Package health decides the health of an upstream from the load reports of
// Envoys and from the counters of the program's own Envoy.
//
// Invariants: it is pure; an unchecked upstream is never called healthy; a
// reason is named only if Envoy has counted it; failures are forgotten after
// a while, and immediately when requests succeed again.
package health
