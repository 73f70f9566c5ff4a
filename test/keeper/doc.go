// Package keeper drives a real Envoy with logins that come and go, from snapshots that
// are made by hand: the planner, its server and Envoy, without what makes snapshots.
package keeper
