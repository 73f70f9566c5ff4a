// Package v1 holds the kinds of cluster mode as Go types: GatewayHost, RouteFilter,
// GlobalConfig and ReferenceGrant, version v1, which is the stored one. The
// CustomResourceDefinitions in charts/gatehouse/crds are made of them (make crds): the
// comments are their descriptions, the markers their validation.
//
// Invariants: whatever the REST API can say about a service, its routes and their
// upstreams has a field here; the documents of the specification are accepted as
// written; a mistake that the schema can express is refused by the API server, with a
// sentence that says what to write.
//
// +kubebuilder:object:generate=true
// +groupName=gateway.gatehouse.dev
package v1
