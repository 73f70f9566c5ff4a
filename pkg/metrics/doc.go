// Package metrics shows Prometheus what the control plane does: the revisions
// it publishes, its Envoys and what they answer, the API, and the Go runtime.
//
// Invariants: a metric is counted where the thing happens or read when it is
// asked for; nothing here steers anything. There is no global registry. Labels
// have few values: names of proxies that have an Envoy, paths as the API's own
// table has them, never names of objects but those of secrets with a certificate.
package metrics
