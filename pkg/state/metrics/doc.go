// Package metrics exports metrics of the control plane to Prometheus: the revisions
// that it publishes, its Envoys and their answers, the API, and the Go runtime.
//
// Invariants: a metric is counted where the event happens or read at a scrape;
// no metric influences the program. There is no global registry. Labels have few
// values: names of proxies that have an Envoy, paths as in the API's own table, and
// of names of objects only those of secrets with a certificate, of logins, and of a
// bounded number of upstreams. No label is what an Envoy or a client says.
package metrics
