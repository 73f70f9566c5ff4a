// Package expiry reports certificates that end, as conditions, events, metrics and lines in the log: those of secrets,
// and those of the xDS port.
//
// Invariants: what pkg/core/certificates says of a time is reported at that time, without a read or a write. The clock
// is trusted for a minute at most, because a machine may sleep.
package expiry
