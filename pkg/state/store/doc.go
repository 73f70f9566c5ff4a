// Package store is the interface between Gatehouse and its database: one
// transaction, one revision, one change log.
//
// Invariants: every write that changes anything takes the next revision, in
// order of commit and without a gap, and leaves an entry in the change log for
// each object, in the same transaction; a signal on Changed carries no data, so
// no signal can be lost.
//
// Every implementation must pass store/storetest.
package store
