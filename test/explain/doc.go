// Package explain compares pkg/diagnostics/explain with a real Envoy: for generated requests
// and configurations, both must choose the same route.
package explain
