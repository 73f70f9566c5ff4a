// Package limits determines which domain rate limits are in and how it is
// written for Envoy and the engine, which limits apply to a proxy, which limits
// a filter's descriptors meet, and why a filter limits nothing.
//
// Invariants: every function is pure. Two domains never have the same name on
// the wire. The lookup of a descriptor follows the engine's own; its specs
// compare the two.
package limits
