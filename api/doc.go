// Package api holds the contract of the REST API: the OpenAPI document, which
// the program serves and against which the tests of pkg/input/rest check every answer.
// Its calls are generated from calls.yaml and the kinds of pkg/core/model (hack/configtypes).
//
// Invariants: the API does nothing that the document does not describe.
package api
