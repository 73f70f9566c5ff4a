// Package kubernetes has the specs of serve --mode kubernetes: the program, real Envoys, and a real kube-apiserver with its
// etcd. No other part of a cluster runs: the specs write what those parts would write, such as EndpointSlices.
package kubernetes
