// Package pki is a small certificate authority for the xDS port: it issues the
// certificates with which a control plane, its Envoys and a rate-limit engine
// authenticate each other. directory.go keeps it in a directory, secrets.go
// decides the contents of Kubernetes Secrets; all but the directory does no I/O.
//
// Invariants: a certificate is for one purpose and names one server, proxy or
// rate-limit engine; every certificate is recorded before it is handed out, so
// that each can be revoked; a file is written whole or not at all, with mode
// 0600, and a replaced file keeps its owner and mode; an interrupted run is
// finished or undone by the next one; what was revoked stays revoked. The time
// is an argument.
package pki
