// Package clients generates clients from the OpenAPI document of a running
// program, in Go, Python and TypeScript, and runs one of each against it. What
// they do is in testdata; the generated code is in no repository.
package clients
