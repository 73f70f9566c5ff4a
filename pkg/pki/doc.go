// Package pki is a small certificate authority for the xDS port: it issues the
// certificates with which a control plane, its Envoys and a rate-limit engine
// prove to each other who they are. directory.go keeps it in a directory, secrets.go
// says what Secrets of Kubernetes should have; all but the directory does no I/O.
//
// Invariants: a certificate is for one purpose and names one server, proxy or
// rate-limit engine; every certificate is recorded before anybody gets it, so
// that each can be revoked; a file is written whole or not at all, with mode
// 0600, and one that is replaced keeps its owner and mode; a run that was
// interrupted is finished or undone by the next one; what was revoked stays
// revoked. The time is an argument.
package pki
