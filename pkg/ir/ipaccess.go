package ir

import "net/netip"

// IPAccess sets which client addresses are allowed. An address is refused if it is in
// a range of Deny, or if a list of Allow has no range with it.
type IPAccess struct {
	// Allow has one list for each filter that sets one.
	Allow [][]netip.Prefix `json:"allow,omitempty"`
	Deny  []netip.Prefix   `json:"deny,omitempty"`
}
