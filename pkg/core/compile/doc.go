// Package compile turns the configuration into what each proxy must do: it
// resolves references, orders routes, groups upstreams into clusters, and
// replaces what cannot work with a fixed 503 and a condition that says why.
//
// Invariants: every function is pure; the result depends on the arguments only,
// and not on the order in which objects were created, except where that order
// is the rule.
package compile
