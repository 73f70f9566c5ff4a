// Package app puts the parts together: it opens the store, binds the addresses
// and runs everything in one group, in which the first failure ends the rest.
//
// Invariants: what cannot start says so before anything is served; on the end
// of its context everything stops in good order, the Envoy first; an API that
// others reach never starts without a token, unless it was told to.
package app
