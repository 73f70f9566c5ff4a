// Package conformance runs the conformance tests of the Gateway API on a node of Kubernetes (make conformance). It is a
// module of its own, because these tests need libraries that Gatehouse does not.
package conformance
