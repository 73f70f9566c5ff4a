// Package keeper drives a real Envoy with logins that come and go, from handmade
// snapshots: the planner, its server and Envoy, without the code that builds snapshots.
package keeper
