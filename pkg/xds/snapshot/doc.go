// Package snapshot holds the resources that one proxy should have, in the form
// that goes on the wire: bytes, content hashes, and what refers to what.
//
// Invariants: a Snapshot and everything in it is immutable; resources that did
// not change are the same pointers in the next Snapshot; equal content has the
// same version, in every process; what Envoy's own constraints refuse never
// becomes a resource.
package snapshot
