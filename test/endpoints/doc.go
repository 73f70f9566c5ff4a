// Package endpoints drives a real Envoy with endpoints that come and go under traffic: the
// build loop, the planner, its server and Envoy, from a source of changes in memory.
package endpoints
