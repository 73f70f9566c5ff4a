package ir

import "time"

// ExtAuthz asks an authorization server whether a request may pass.
type ExtAuthz struct {
	// Cluster is the name of one of those that are Asked.
	Cluster string `json:"cluster"`
	// GRPC asks by a call; else by a request for Path, or for PathPrefix and the request's own path.
	GRPC       bool   `json:"grpc,omitempty"`
	Path       string `json:"path,omitempty"`
	PathPrefix string `json:"pathPrefix,omitempty"`
	// UpstreamHeaders, in lower case, are its answer's that the upstream gets; nobody else may set them.
	UpstreamHeaders []string `json:"upstreamHeaders,omitempty"`
	// BodyBytes bounds the bodies that it gets; 0 means that it gets none.
	BodyBytes int           `json:"bodyBytes,omitempty"`
	Timeout   time.Duration `json:"timeout"`
	// Allow lets requests pass that it cannot be asked about.
	Allow bool `json:"allow,omitempty"`
}
