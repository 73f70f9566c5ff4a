// Package cluster tests Gatehouse on a real node of Kubernetes. `make test-cluster`
// makes the images, starts a node (hack/cluster.sh) and runs these specs beside it, in
// its network. They have the build tag cluster. The directory echo is their backend.
package cluster
