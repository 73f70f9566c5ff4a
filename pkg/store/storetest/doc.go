// Package storetest is the suite that every implementation of store.Store has
// to pass. An implementation's own test calls Specs inside a ginkgo container.
//
// Invariants: each spec gets an empty database of its own; expected values are
// written by hand; no goroutine outlives a spec.
package storetest
