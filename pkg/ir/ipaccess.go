package ir

import "net/netip"

// IPAccess sets which client addresses are allowed. An address is refused if a range
// of Deny contains it, or if one of the Allow lists has no range that does.
type IPAccess struct {
	// Allow has one list for each filter that sets one.
	Allow [][]netip.Prefix `json:"allow,omitempty"`
	Deny  []netip.Prefix   `json:"deny,omitempty"`
}
