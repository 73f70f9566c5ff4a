// Package translate turns what a proxy must do into Envoy's configuration. A
// function is named for the proto that it returns; every resource name is made
// in names.go, and the order of the HTTP filters is decided in
// http_filters.go.
//
// Invariants: every function is pure and never fails; whether Envoy would
// accept the result is checked by pkg/xds/snapshot.
package translate
