// Package status writes the conditions of GatewayHosts, RouteFilters and GlobalConfigs into Kubernetes.
//
// Every replica runs a Writer; the one that holds a Lease writes. pkg/input/kube/conditions decides the conditions;
// this package decides which object is written and when.
//
// Invariants: an object is written only when its status differs from what is known. A patch has the status only, so it
// never conflicts with a user's change. Without the API server, the Lease or the rights nothing is written, and all
// else continues.
package status
