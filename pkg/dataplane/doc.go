// Package dataplane connects an Envoy that is no part of this process to a control
// plane: it checks the files with which the Envoy proves who it is, makes its
// bootstrap, and starts it.
//
// Invariants: a token is part of nothing but the bootstrap, never of an error; what
// is started reads its bootstrap from memory, so that no file is left behind.
package dataplane
