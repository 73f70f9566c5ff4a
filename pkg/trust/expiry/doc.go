// Package expiry reports certificates and API keys that end, as conditions, events, metrics and lines in the log. Of
// certificates these are those of secrets, and those of the xDS port. It marks API keys that have ended in what the build
// loop reads.
//
// Invariants: what pkg/core/certificates says of a time is reported at that time, without a read or a write; a key is
// marked at its time, whoever reads first. The clock is trusted for a minute at most, because a machine may sleep.
package expiry
