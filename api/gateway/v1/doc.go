// Package v1 holds the kinds of cluster mode as Go types: GatewayHost, RouteFilter,
// GlobalConfig and ReferenceGrant, in v1, the storage version. The
// CustomResourceDefinitions in charts/gatehouse/crds are generated from them (make crds):
// comments become descriptions, markers become validation.
//
// Invariants: whatever the REST API can set on a service, its routes and their
// upstreams has a field here; the documents of the specification are accepted as
// written; the API server refuses every mistake that the schema can express, and
// its message says what to write.
//
// +kubebuilder:object:generate=true
// +groupName=gateway.gatehouse.dev
package v1
