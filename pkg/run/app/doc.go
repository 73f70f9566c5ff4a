// Package app puts the parts together: it opens the store, binds the addresses
// and runs everything in one group, in which the first failure ends the rest.
//
// Invariants: what cannot start reports an error before anything is served; when
// the context ends, everything stops in order, the Envoy first; an API that other
// machines can reach never starts without a token, unless a setting allows it.
package app
