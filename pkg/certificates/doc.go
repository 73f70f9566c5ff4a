// Package certificates says what is to be known of the certificates in the
// configuration by themselves: which end soon or have ended, which are not for the
// services that have them, and which services need one and have none.
//
// Invariants: it has no clock and does no I/O; Apply costs in proportion to the change.
package certificates
