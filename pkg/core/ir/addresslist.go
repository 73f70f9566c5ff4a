package ir

import "net/netip"

// AddressList is a list of addresses that filters name.
type AddressList struct {
	Name string `json:"name"`
	// Ranges are sorted, and none lies in another.
	Ranges []netip.Prefix `json:"ranges,omitempty"`
}
