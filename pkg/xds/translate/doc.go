// Package translate turns what a proxy must do into Envoy's configuration. A
// function is named for the proto that it returns; every resource name is made
// in names.go, and the order of the HTTP filters is decided in
// http_filters.go.
//
// Invariants: every function is pure. What is packed into an Any is checked with
// Envoy's constraints first, and what they refuse is an error; the message that
// is returned is checked by pkg/xds/snapshot.
package translate
