// Package upstreams reports the health of upstreams: from the load reports of all Envoys, from the admin endpoint of
// the Envoy that this process starts, and from TLS handshakes with those that fail.
//
// Invariants: pkg/core/health chooses the words. Only what a call is about is read, within bounds of time and number.
// What it remembers is bounded, and ends with the process. A handshake sends no request.
package upstreams
