// Package explain predicts what an Envoy does with a request, from what the
// Envoy has, and why: which service and route take it and why not the others,
// what the upstream sees, and every answer that the gateway gives by itself.
//
// The rules are those of Envoy 1.39.3 over HTTP/1.1; test/explain compares them
// with a real Envoy. What does not affect the choice of a route (bodies, framing,
// limits) is left out. For rate limits it shows what the engine receives, not its
// answer (test/e2e compares this with a real Envoy).
//
// Invariants: it is pure; it reads the resources that are sent and nothing of how
// they were made; what it does not know is an error and never a guess.
package explain
