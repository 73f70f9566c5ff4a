package ir

import "net/netip"

// Access is a set of rules for requests: a rule of Allow must match, and no
// rule of Deny may match.
type Access struct {
	Allow []AccessRule `json:"allow"`
	Deny  []AccessRule `json:"deny,omitempty"`
}

// AccessRule matches requests that meet all its conditions.
type AccessRule struct {
	// Methods and Paths are alternatives; empty means all.
	Methods []string     `json:"methods,omitempty"`
	Paths   []AccessPath `json:"paths,omitempty"`
	Claims  []ClaimMatch `json:"claims,omitempty"`
	// Clients are alternatives: the client of an API key, or a key set and a slash for all of its clients. Empty means
	// all, also those without a key.
	Clients []string `json:"clients,omitempty"`
	// Headers must all hold.
	Headers []HeaderValues `json:"headers,omitempty"`
	// Addresses are alternatives for the address of the client; empty means all.
	Addresses []netip.Prefix `json:"addresses,omitempty"`
}

// HeaderValues is a header with one of some values; none means any value.
type HeaderValues struct {
	// Name is in lower case.
	Name   string   `json:"name"`
	Values []string `json:"values,omitempty"`
}

// AccessPath is a path of one kind: exact, prefix or segment.
type AccessPath struct {
	Kind PathKind `json:"kind"`
	Path string   `json:"path"`
}
