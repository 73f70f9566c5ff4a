// Package e2e holds end-to-end specs: they start the program as a user would,
// with a real Envoy and real backends, and judge what a user sees.
//
// It may import pkg/testkit only: nothing of the program itself.
package e2e
