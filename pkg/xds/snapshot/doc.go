// Package snapshot holds the resources that one proxy should have, in wire
// format: bytes, content hashes, and which resource refers to which.
//
// Invariants: a Snapshot and everything in it is immutable; resources that did
// not change are the same pointers in the next Snapshot; equal content has the
// same version, in every process; what violates Envoy's own constraints never
// becomes a resource.
package snapshot
