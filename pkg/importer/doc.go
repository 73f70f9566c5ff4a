// Package importer makes a service with its routes from a description of an
// HTTP API: an OpenAPI 3 document.
//
// Invariants: nothing is read but what the caller hands in (a reference to
// another file or server is an error); the same description, options and state
// of the server give the same plan; a route that no import made is neither
// changed nor removed; every error names the operation, and the line where it
// is known.
package importer
