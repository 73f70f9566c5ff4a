// Package storetest is the suite that every implementation of store.Store must
// pass. The implementation's own test calls Specs inside a ginkgo container.
//
// Invariants: each spec gets its own empty database; expected values are
// written by hand; no goroutine outlives a spec.
package storetest
