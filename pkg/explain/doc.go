// Package explain says what an Envoy does with a request, from what it has, and
// why: which service and route take it and why not the others, what the
// upstream sees, and every answer that the gateway gives by itself.
//
// The rules are those of Envoy 1.39.3 over HTTP/1.1; test/explain holds them to
// a real one. What is not about choosing a route (bodies, framing, limits) is
// left out; of rate limits it says what the engine is asked, not its answer
// (held to a real Envoy in test/e2e).
//
// Invariants: it is pure; it reads the pieces that are sent and nothing of how
// they were made; what it does not know of is an error and never a guess.
package explain
