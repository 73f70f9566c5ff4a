// Package kubernetes has the specs of serve --mode kubernetes: the program, real Envoys, and a real kube-apiserver with its
// etcd. Nothing stands in for the other parts of a cluster: what they would write, such as EndpointSlices, the specs do.
package kubernetes
