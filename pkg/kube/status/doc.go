// Package status writes the conditions of GatewayHosts, RouteFilters and GlobalConfigs into Kubernetes.
//
// Every replica runs a Writer; the one that holds a Lease writes. What the conditions say is decided in
// pkg/kube/conditions; this package decides when which object is written.
//
// Invariants: an object is written only when its status says something else than what is known. A patch has the status
// only, so that it is never in the way of a user's change. Without the API server, the Lease or the rights nothing is
// written, and all else goes on.
package status
