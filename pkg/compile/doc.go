// Package compile turns the configuration into what each proxy must do: it
// resolves references, orders routes, groups upstreams into clusters, and
// replaces what cannot work by a fixed 503 with a condition that says why.
//
// Invariants: every function is pure; the result depends on nothing but the
// arguments and not on the order in which things were created, except where
// that order is the rule.
package compile
