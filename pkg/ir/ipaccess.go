package ir

import "net/netip"

// IPAccess says whose requests pass, by the address of the client. A client that is in
// one of Deny, or in none of the ranges of one list of Allow, is refused.
type IPAccess struct {
	// Allow has a list for each filter that has one.
	Allow [][]netip.Prefix `json:"allow,omitempty"`
	Deny  []netip.Prefix   `json:"deny,omitempty"`
}
