package ir

import "time"

// ExtAuthz asks an authorization server whether a request is allowed.
type ExtAuthz struct {
	// Cluster is the name of one of the Asked clusters.
	Cluster string `json:"cluster"`
	// GRPC asks with a gRPC call. Otherwise Envoy sends a request to Path, or to PathPrefix plus the
	// request's own path.
	GRPC       bool   `json:"grpc,omitempty"`
	Path       string `json:"path,omitempty"`
	PathPrefix string `json:"pathPrefix,omitempty"`
	// UpstreamHeaders are headers of the server's answer that the upstream receives, in lower case.
	// Nobody else may set them.
	UpstreamHeaders []string `json:"upstreamHeaders,omitempty"`
	// BodyBytes is how much of a body the server receives; 0 means that it receives none.
	BodyBytes int           `json:"bodyBytes,omitempty"`
	Timeout   time.Duration `json:"timeout"`
	// Allow allows a request if the server cannot be asked about it.
	Allow bool `json:"allow,omitempty"`
}
