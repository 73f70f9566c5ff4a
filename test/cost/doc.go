// Package cost counts the instructions that Envoy executes for a request, with what the
// REST API makes of a configuration, beside one that is written by hand. No part may cost
// more than the table in docs/performance.md says; make cost writes that table again.
//
// To count something else, add a row to parts_test.go.
package cost
