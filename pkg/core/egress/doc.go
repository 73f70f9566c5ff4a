// Package egress decides which addresses upstreams may have: those that the
// operator allows, and not the gateway's own.
//
// Invariants: it is pure; it does no DNS lookup, so it judges a DNS name by the
// name alone.
package egress
