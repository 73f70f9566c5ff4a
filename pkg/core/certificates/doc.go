// Package certificates reports on the certificates in the configuration: which
// expire soon or have expired, which are not for the services that have them, and
// which services need one and have none.
//
// Invariants: it has no clock and does no I/O; Apply costs in proportion to the change.
package certificates
