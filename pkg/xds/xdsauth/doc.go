// Package xdsauth identifies a client of the xDS port: by its certificate, by a token, or by
// the socket on which it connects. pkg/xds/server calls it at the start of every stream and call,
// and decides what the client may have.
//
// Invariants: what a client presents is checked, even where the port is open, and a bad proof is
// refused, never ignored. If there are two proofs, both must be valid, and the client may do only
// what both allow. A proof is checked again while the stream lives, and the stream ends with it.
// No text of a token is kept or logged.
package xdsauth
