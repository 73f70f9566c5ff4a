// Package telemetry sends spans and metrics of the control plane itself to a collector (OpenTelemetry, OTLP over HTTP).
//
// Invariants: nothing waits for the collector, except for a moment at the end of the program. What cannot be sent is
// dropped and counted. Only calls that are sampled are followed, at most maxFollowed at a time. No span holds a query,
// a header, or a part of a body.
package telemetry
