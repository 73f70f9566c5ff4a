// Package xdsauth finds out who a client of the xDS port is: by its certificate, by a
// token, or by the socket on which it comes. pkg/xds/server asks it at the start of every stream
// and call, and decides what the client may have.
//
// Invariants: what a client presents is checked, also where the port is open, and a bad proof is
// refused, never ignored. Of two proofs both must hold, and the client may do only what both
// allow. A proof is checked again while the stream lives, so that its end is the end of the stream.
// No text of a token is kept or logged.
package xdsauth
