// Package testkit runs the program and what surrounds it for tests: gatehouse,
// Envoy, Redis, the rate-limit engine, a Kubernetes API and identity providers as
// processes, backends, traffic, a scripted browser, and an xDS client.
//
// Invariants: a missing binary is an error that says how to build it, never a
// skipped test; everything is on loopback; whoever starts a process stops it,
// and a child process ends with the test's process at the latest. Functions
// return what a test judges, so that they work without a test framework.
package testkit
