// Package conditions says what the conditions of a Kubernetes object are, from what is known of it.
//
// Invariants: no clock and no I/O. The conditions of an object depend on facts about that object only. A condition
// that did not change is returned as it was, so that nothing is written.
package conditions
