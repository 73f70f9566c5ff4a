// Package chart has the specs of charts/gatehouse: what helm renders, that a real API
// server accepts it, that Pod Security admits its pods, and which rights it requests.
// test/cluster installs it on a node.
package chart
