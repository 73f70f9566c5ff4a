// Package cluster tests Gatehouse on a real Kubernetes node. `make test-cluster`
// builds the images, starts a node (hack/cluster.sh) and runs these specs in the node's
// network. They have the build tag cluster. The directory echo is their backend.
package cluster
