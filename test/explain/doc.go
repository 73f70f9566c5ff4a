// Package explain holds pkg/explain to a real Envoy: for generated
// requests over generated configurations both have to choose the same route.
package explain
