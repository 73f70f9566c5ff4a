// Package inspect reports the live state: which Envoys have an object, the
// state of the Envoys of a proxy, which upstreams fail, and what rate limits
// have counted.
//
// An answer joins stored objects with the live state. What it needs from the
// store is read first, in the transaction of the caller (the functions that take
// a store.Reader); the Inspector then adds what the Sources report, without a
// transaction.
//
// Invariants: it only reads. It returns what the REST API writes, field by
// field. It starts no goroutine.
package inspect
