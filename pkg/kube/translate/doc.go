// Package translate makes model objects of Kubernetes objects: GatewayHosts, RouteFilters
// and GlobalConfigs, and the Services, EndpointSlices, Secrets and ReferenceGrants that they
// lead to.
//
// A World holds what Kubernetes has said. What changes in it is translated again, and only
// that, and comes out as a Step: the operations that bring a store to what the objects say, the
// endpoints of the upstreams, and what became of each object.
//
// Invariants: no I/O, no clock; the same objects give the same result in whatever order they
// came; what is wrong with an object closes what it would have opened and touches no other
// object; every object that comes out is valid, and the operations of a Step keep the rules of
// pkg/store in the order that they have.
package translate
