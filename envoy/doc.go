// Package envoy holds what an Envoy needs to start: the template of its
// bootstrap configuration, and the version of Envoy that it is made for.
//
// Invariants: everything but the connection to the control plane comes over
// xDS; no input can change the structure of the YAML.
package envoy
