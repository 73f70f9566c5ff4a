// Package testkit runs the program and what surrounds it for tests: gatehouse,
// Envoy, Redis, the rate-limit engine, a Kubernetes API and identity providers as
// processes, backends, traffic, a scripted browser, and an xDS client.
//
// Invariants: a missing binary is an error that says how to build it, never a
// skipped test; everything is on loopback; the one that starts something ends it,
// and a child process ends with the test's process at the latest. What a test
// is to judge is returned, so that it can be used without a test framework.
package testkit
