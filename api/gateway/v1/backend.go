package v1

import "k8s.io/apimachinery/pkg/util/intstr"

// Backend is a Service that receives requests, and how the gateway speaks to it.
type Backend struct {
	// The name of the Service.
	Name ObjectName `json:"name"`
	// The namespace of the Service, which needs a ReferenceGrant there. Empty means that of the
	// GatewayHost.
	// +optional
	Namespace Namespace `json:"namespace,omitempty"`
	// The port of the Service: its number or its name.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 65535 : self.matches('^[a-z0-9-]*[a-z][a-z0-9-]*$')",message="must be the number of a port, 1 to 65535, or the name of a port of the Service"
	Port intstr.IntOrString `json:"port"`
	// The Service's share of the requests beside the others of the route. 0 takes it out of rotation.
	// Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	BackendSettings `json:",inline"`
}

// BackendSettings say how the gateway speaks to the endpoints of a Service.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.protocol) || self.protocol == 'tls' || self.protocol == 'h2'",message="needs a protocol over TLS: write protocol: tls or protocol: h2",fieldPath=.tls
type BackendSettings struct {
	// How the gateway speaks to the Service: http (HTTP/1.1), h2c (HTTP/2 in the clear), tls (HTTP/1.1
	// over TLS) or h2 (HTTP/2 over TLS). Default: as appProtocol of the Service's port says, else http.
	// +optional
	// +kubebuilder:validation:Enum=http;h2c;tls;h2
	Protocol string `json:"protocol,omitempty"`
	// How a request picks an endpoint of the Service. Default: round_robin.
	// +optional
	// +kubebuilder:validation:Enum=round_robin;least_request;random;ring_hash;maglev
	Strategy string `json:"strategy,omitempty"`
	// How the certificate of the Service is checked, where the protocol is tls or h2.
	// +optional
	TLS *BackendTLS `json:"tls,omitempty"`
	// Requests by which the gateway itself finds out whether an endpoint is healthy, beside the
	// readiness that Kubernetes tells.
	// +optional
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
	// The connections to an endpoint.
	// +optional
	Connection *Connection `json:"connection,omitempty"`
	// How much there may be at a time, for all endpoints of the Service together. What is above it is
	// answered with 503 at once.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
	// When an endpoint that fails gets no requests for a while.
	// +optional
	Outlier *Outlier `json:"outlier,omitempty"`
	// When less than this share of the endpoints is healthy, in percent, all of them get requests.
	// Default: 0, so that an unhealthy one never does.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	PanicThresholdPercent *int32 `json:"panicThresholdPercent,omitempty"`
}

// BackendTLS says how the certificate of a Service is checked.
//
// +kubebuilder:validation:XValidation:rule="!has(self.insecure) || !self.insecure || !has(self.caSecret)",message="cannot be combined with caSecret: one of them accepts every certificate",fieldPath=.insecure
type BackendTLS struct {
	// The Secret with the certificate authorities (ca.crt), one of which must have signed the
	// certificate. Without it: those of the system.
	// +optional
	CASecret *SecretReference `json:"caSecret,omitempty"`
	// The DNS name or IP address that the certificate must carry; a DNS name is also sent as the SNI.
	// Default: the host name of an ExternalName Service, else SERVICE.NAMESPACE.svc.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=254
	SubjectName string `json:"subjectName,omitempty"`
	// Whether every certificate is accepted: whoever is on the way can read and change requests.
	// Default: false.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// The Secret with the certificate and key that the gateway shows to the Service, of type
	// kubernetes.io/tls. Without it: none.
	// +optional
	ClientSecret *SecretReference `json:"clientSecret,omitempty"`
}

// HealthCheck is an active health check.
type HealthCheck struct {
	// The path that is asked for. Without it there is no health check.
	// +optional
	Path *URLPath `json:"path,omitempty"`
	// The Host header. Default: the name of Envoy's cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Host string `json:"host,omitempty"`
	// Seconds between two checks. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`
	// Seconds until a check without an answer has failed. Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// Failed checks in a row after which an endpoint is unhealthy. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	UnhealthyThreshold *int32 `json:"unhealthyThreshold,omitempty"`
	// Checks in a row that must succeed for an endpoint to be healthy again. Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	HealthyThreshold *int32 `json:"healthyThreshold,omitempty"`
}

// Connection is about the connections to an endpoint.
type Connection struct {
	// Seconds to connect, TLS included. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	ConnectTimeoutSeconds *int32 `json:"connectTimeoutSeconds,omitempty"`
	// Seconds for which a connection without a request is kept; 0 means for ever. Default: 4.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`
	// Seconds of silence after which a connection is probed, and between probes; 0 means never.
	// Default: 30.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=7200
	KeepaliveIntervalSeconds *int32 `json:"keepaliveIntervalSeconds,omitempty"`
}

// Limits are how much there may be at a time (Envoy's circuit breakers).
type Limits struct {
	// Connections. Default: 4096.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxConnections *int32 `json:"maxConnections,omitempty"`
	// Requests that wait for a connection. Default: 4096.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxPending *int32 `json:"maxPending,omitempty"`
	// Requests in all. Default: 4096.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxRequests *int32 `json:"maxRequests,omitempty"`
	// Retries. Default: 4096.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxRetries *int32 `json:"maxRetries,omitempty"`
	// The share of the requests at a time that may be retries, in percent; it takes the place of maxRetries. 0 means that there is
	// no such budget. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RetryBudgetPercent *int32 `json:"retryBudgetPercent,omitempty"`
	// Retries that a budget lets pass however few requests there are. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	RetryBudgetMinCount *int32 `json:"retryBudgetMinCount,omitempty"`
}

// Outlier says when an endpoint that fails gets no requests for a while.
type Outlier struct {
	// Failures in a row to connect or to answer; 0 means that it always gets requests. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Threshold *int32 `json:"threshold,omitempty"`
	// Seconds without requests. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	EjectionSeconds *int32 `json:"ejectionSeconds,omitempty"`
}
