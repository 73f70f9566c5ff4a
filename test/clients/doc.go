// Package clients generates clients from the OpenAPI document of a running
// program, in Go, Python and TypeScript, and runs one of each against it. What
// they do is in testdata; the generated code is in no repository.
//
// It may import pkg/testkit only: nothing of the program itself.
package clients
