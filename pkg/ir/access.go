package ir

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
}

// AccessPath is a path of one kind: exact, prefix or segment.
type AccessPath struct {
	Kind PathKind `json:"kind"`
	Path string   `json:"path"`
}
