// Package conditions decides the conditions of a Kubernetes object from facts about it.
//
// Invariants: no clock and no I/O. The conditions of an object depend on facts about that object only. An unchanged
// condition is returned as it was, so that nothing is written.
package conditions
