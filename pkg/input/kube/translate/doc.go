// Package translate turns Kubernetes objects into model objects: GatewayHosts, RouteFilters
// and GlobalConfigs, and the Services, EndpointSlices, Secrets and ReferenceGrants that they
// refer to.
//
// A World holds the objects received from Kubernetes. Only what changes in it is translated
// again, and the result is a Step: the operations that bring a store in step with the objects,
// the endpoints of the upstreams, and what became of each object.
//
// Invariants: no I/O, no clock; the same objects give the same result in whatever order they
// arrive; a problem with an object closes what the object would have opened and affects no other
// object; every resulting object is valid, and the operations of a Step, applied in their order,
// keep the rules of pkg/state/store.
package translate
