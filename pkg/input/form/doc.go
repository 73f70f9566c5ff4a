// Package form defines the fields of each kind of object in forms, JSON and
// configuration documents, and stores received values in the object. The tag form on the types of
// pkg/core/model says which fields there are.
//
// Invariants: only these tags know the names of the fields; every bad field is
// reported, not only the first; no I/O.
package form
