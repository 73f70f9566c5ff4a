package ir

// Access says who may do what: what a rule of Allow is for, and none of Deny.
type Access struct {
	Allow []AccessRule `json:"allow"`
	Deny  []AccessRule `json:"deny,omitempty"`
}

// AccessRule is for the requests that meet all its conditions.
type AccessRule struct {
	// Methods and Paths are alternatives; none means all.
	Methods []string     `json:"methods,omitempty"`
	Paths   []AccessPath `json:"paths,omitempty"`
	Claims  []ClaimMatch `json:"claims,omitempty"`
}

// AccessPath is a path of a kind: exact, prefix or segment.
type AccessPath struct {
	Kind PathKind `json:"kind"`
	Path string   `json:"path"`
}
