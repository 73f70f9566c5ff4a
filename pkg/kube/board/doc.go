// Package board is the board of pkg/replicas in Kubernetes: one ConfigMap for each replica, in one namespace.
//
// A ConfigMap belongs to the Pod of its replica and goes with it. Others are watched by a label, never all of the
// namespace.
//
// Invariants: no clock but that of the reader is used: a replica lives while its ConfigMap changes. What is removed is
// what was read, never what came in its place.
package board
