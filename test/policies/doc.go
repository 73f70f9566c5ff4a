// Package policies tests each type of filter on a real Envoy through the REST API, with
// one harness: an entry has configurations, and requests with their answers.
//
// To add a type, add a file with its entry, and the entry to the list of policies.
package policies
