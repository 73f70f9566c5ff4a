// Package mapping maps the fields of GatewayHosts to those of services, routes and upstreams, and back. The controller
// (pkg/input/kube/translate) and the export and import of objects (pkg/input/crd) use it.
//
// The table is the types of api/gateway/v1: a field has the tag model with the JSON name of its counterpart in
// pkg/core/model, unless both have the same name. A struct without a counterpart groups fields of the same object. So a
// field of both sides needs no code here; what has another form on each side, such as the path of a condition, is code.
//
// Invariants: no I/O, no clock; what Write makes, Read reads as the same; fields without a tag or a common name, such
// as the Services of a route, belong to the caller.
package mapping
