// Package crd writes the configuration document as objects of Kubernetes, and reads such
// objects back into a document, so that a configuration moves between the REST API and a
// cluster.
//
// Invariants: no I/O; Import of what Export returned is the same configuration; what
// Kubernetes cannot represent is an error that names it; secrets are written only on
// request; the same document gives the same objects.
package crd
