// Package inspect answers what is known of the live state: how far an object
// is on its way to the Envoys, how the Envoys of a proxy are, which upstreams
// fail, and what rate limits have counted.
//
// An answer joins what is stored with what is known at this moment. What it
// needs of the store is read first, in the transaction of the caller (the
// functions that take a store.Reader); the Inspector then adds what the Sources
// say, without a transaction.
//
// Invariants: it only reads. What it returns is what the REST API writes, field
// by field. It starts no goroutine.
package inspect
