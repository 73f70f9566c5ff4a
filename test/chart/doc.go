// Package chart has the specs of charts/gatehouse: what helm renders, that a real API
// server takes it, that Pod Security lets its pods in, and which rights it asks for.
// test/cluster installs it on a node.
package chart
