// Package egress says which addresses upstreams may have: those that the
// operator allows, and not the gateway's own.
//
// Invariants: it is pure; it looks nothing up, so of a DNS name it knows only
// what the name itself says.
package egress
