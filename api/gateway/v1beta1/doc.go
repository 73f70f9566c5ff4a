// Package v1beta1 holds the kinds of cluster mode as they are served under v1beta1. Their
// schemas are the schemas of v1, so the API server converts by changing only the apiVersion.
//
// Invariants: nothing but the version differs from v1.
//
// +kubebuilder:object:generate=true
// +groupName=gateway.gatehouse.dev
package v1beta1
