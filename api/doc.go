// Package api holds the contract of the REST API: the OpenAPI document, which
// the program serves and which the tests of pkg/rest hold every answer to.
//
// Invariants: what the document does not say, the API does not do.
package api
