// Package dataplane connects an Envoy outside the control plane's process: it checks
// the files with which the Envoy proves its identity, makes its bootstrap, and starts
// it.
//
// Invariants: a token is part of the bootstrap only, never of an error; the Envoy
// reads its bootstrap from memory, so no file is left behind.
package dataplane
