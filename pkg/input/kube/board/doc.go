// Package board is the board of pkg/state/replicas in Kubernetes: one ConfigMap for each replica, in one namespace.
//
// The Pod of a replica owns its ConfigMap, which is deleted with it. The ConfigMaps are watched by a label, never all
// ConfigMaps of the namespace.
//
// Invariants: only the reader's clock is used: a replica lives while its ConfigMap changes. Only the ConfigMap that was
// read is removed, never one that has replaced it.
package board
