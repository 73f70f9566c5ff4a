// Package observe runs the alerts and the queries of the dashboards (charts/gatehouse/files) in a real Prometheus that
// reads a real gateway and its Envoy.
package observe
