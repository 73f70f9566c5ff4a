// Package kube keeps a store, the mirror, in step with the objects of Kubernetes.
//
// Informers watch GatewayHosts, RouteFilters, GlobalConfigs, ReferenceGrants, Services and EndpointSlices, and the
// metadata of Secrets. One goroutine takes what has changed, reads the Secrets that are named, calls
// pkg/input/kube/translate to make model objects, and writes the difference in one transaction. Endpoints are not
// stored: they join the changes on their way to the build loop.
//
// Invariants:
//   - No configuration is announced before the required kinds, and every other kind that can be read, have been read.
//   - What becomes unreadable stays as it was. What could never be read closes what needs it.
//   - No upstream reaches the build loop without its endpoints.
//   - A Secret that no object names, or may name, is never read.
//   - An object that cannot be stored is left out, and affects no other object.
//   - While the API server is down, each kind tries again every few seconds. What was read is not listed again, unless
//     the server ends a watch.
package kube
