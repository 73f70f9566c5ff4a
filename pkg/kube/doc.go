// Package kube brings a store, the mirror, to what the objects of Kubernetes say, and keeps it there.
//
// Informers follow GatewayHosts, RouteFilters, GlobalConfigs, ReferenceGrants, Services and EndpointSlices, and of
// Secrets the metadata only. One goroutine takes what has changed, reads the Secrets that are named, has pkg/kube/translate
// make model objects of it, and writes the difference in one transaction. Endpoints are not stored: they join the
// changes on their way to the build loop.
//
// Invariants:
//   - Nobody is told of a configuration before every kind that can be read was read, and the kinds that are needed.
//   - What becomes unreadable stays as it was. What could never be read closes what needs it.
//   - No upstream reaches the build loop without its endpoints.
//   - A Secret that no object names, or may name, is never read.
//   - An object that cannot be stored is left out, and harms no other one.
//   - While the API server is away, each kind asks for it every few seconds. What was read is not listed again, unless the server ends a watch.
package kube
