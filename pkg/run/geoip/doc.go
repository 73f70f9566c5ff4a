// Package geoip keeps checked copies of databases that say in which country or network an address is, for an Envoy
// beside this process.
//
// Invariants: what Envoy reads is a copy that was checked as a whole, since Envoy ends if it gets a listener and the
// file is absent or no database; a copy is replaced by another good one only, with a rename, and is never removed while
// Envoy runs.
package geoip
