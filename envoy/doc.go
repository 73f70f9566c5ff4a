// Package envoy holds what Gatehouse gives an Envoy to start with: the
// bootstrap configuration, from a template, and the version it is made for.
//
// Invariants: everything but the connection to the control plane comes over
// xDS; no input can change the structure of the YAML.
package envoy
