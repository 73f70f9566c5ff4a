// Package form says which fields each kind of object has when it is sent, in a
// form, in JSON or in a configuration document, and puts what was sent into
// the object.
//
// Invariants: the tables are the only place that knows the names of the fields;
// every bad field is reported, not the first; nothing here reads or writes.
package form
