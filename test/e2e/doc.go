// Package e2e holds end-to-end specs: they start the program as a user would,
// with a real Envoy and real backends, and judge what a user sees.
package e2e
