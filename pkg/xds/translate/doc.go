// Package translate turns what a proxy must do into Envoy's configuration. A
// function is named for the proto that it returns; every resource name is made
// in names.go, and the order of the HTTP filters is decided in
// http_filters.go.
//
// Invariants: every function is pure. A message is checked with Envoy's
// constraints before it is packed into an Any, and a violation is an error;
// pkg/xds/snapshot checks the returned message.
package translate
