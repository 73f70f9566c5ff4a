package v1

import "k8s.io/apimachinery/pkg/util/intstr"

// Backend is a Service that receives requests, and how the gateway speaks to it.
type Backend struct {
	// The name of the Service.
	Name ObjectName `json:"name"`
	// The namespace of the Service. Empty means the namespace of the GatewayHost. Another namespace
	// needs a ReferenceGrant in it.
	// +optional
	Namespace Namespace `json:"namespace,omitempty"`
	// The number or name of the Service's port.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 65535 : self.matches('^[a-z0-9-]*[a-z][a-z0-9-]*$')",message="must be the number of a port, 1 to 65535, or the name of a port of the Service"
	Port intstr.IntOrString `json:"port"`
	// The Service's share of the requests, relative to the route's other Services. 0 takes it out of
	// rotation. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty" model:"upstream_weight"`

	BackendSettings `json:",inline"`
}

// BackendSettings say how the gateway speaks to the endpoints of a Service.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.protocol) || self.protocol == 'tls' || self.protocol == 'h2'",message="needs a protocol over TLS: write protocol: tls or protocol: h2",fieldPath=.tls
type BackendSettings struct {
	// How the gateway speaks to the Service: http (HTTP/1.1), h2c (HTTP/2 in the clear), tls (HTTP/1.1
	// over TLS) or h2 (HTTP/2 over TLS). Default: derived from appProtocol of the Service's port, else http.
	// +optional
	// +kubebuilder:validation:Enum=http;h2c;tls;h2
	Protocol string `json:"protocol,omitempty" model:"upstream_protocol"`
	// How Envoy selects an endpoint for a request. Default: round_robin.
	// +optional
	// +kubebuilder:validation:Enum=round_robin;least_request;random;ring_hash;maglev
	Strategy string `json:"strategy,omitempty" model:"upstream_strategy"`
	// Services of the route with a higher number get requests only as far as those with a lower one are not healthy. Those
	// with different numbers must have equal settings. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=7
	Priority *int32 `json:"priority,omitempty" model:"upstream_priority"`
	// The zone of the host of an ExternalName Service. Other endpoints have the zones that Kubernetes reports.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	Zone string `json:"zone,omitempty" model:"upstream_zone"`
	// Requests stay in the zone of the Envoy (--zone) while at least this number of endpoints there is healthy; 0 means
	// that zones do not matter. Needs the strategy round_robin, least_request or random. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	ZoneMinCount *int32 `json:"zoneMinCount,omitempty" model:"upstream_zone_mincount"`
	// Seconds in which the share of an endpoint that becomes healthy grows to its weight. Needs the strategy round_robin or
	// least_request. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	SlowStartSeconds *int32 `json:"slowStartSeconds,omitempty" model:"upstream_slowstart_seconds"`
	// How the host name of an ExternalName Service is resolved.
	// +optional
	DNS *BackendDNS `json:"dns,omitempty"`
	// Whether each connection begins with the PROXY protocol, version 1 or 2, which says whose connection to the gateway it
	// passes on. The Service must read it. Default: none.
	// +optional
	// +kubebuilder:validation:Enum=none;v1;v2
	ProxyProtocol string `json:"proxyProtocol,omitempty" model:"upstream_proxyprotocol"`
	// How the gateway verifies the Service's certificate, if the protocol is tls or h2.
	// +optional
	TLS *BackendTLS `json:"tls,omitempty"`
	// Health checks by the gateway itself, in addition to the readiness that Kubernetes reports.
	// +optional
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
	// Settings of the connections to an endpoint.
	// +optional
	Connection *Connection `json:"connection,omitempty"`
	// Limits of concurrent connections, requests and retries, for all endpoints of the Service, and of
	// the route's other Services with equal settings, together. A request above a limit gets 503
	// immediately; a retry above the limit is not made.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
	// When an endpoint that fails is ejected: it gets no requests for some time.
	// +optional
	Outlier *Outlier `json:"outlier,omitempty"`
	// If less than this percentage of the endpoints is healthy, all endpoints get requests. With 0,
	// unhealthy endpoints never do. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	PanicThresholdPercent *int32 `json:"panicThresholdPercent,omitempty" model:"upstream_panic_thresholdpercent"`
}

// BackendDNS says how the host name of an ExternalName Service is resolved.
type BackendDNS struct {
	// Requests go to all addresses (strict), or to the first one (logical). Default: strict.
	// +optional
	// +kubebuilder:validation:Enum=strict;logical
	Mode string `json:"mode,omitempty" model:"upstream_dns"`
	// Which addresses count. Default: v4_preferred.
	// +optional
	// +kubebuilder:validation:Enum=v4_preferred;v6_preferred;v4_only;v6_only;all
	Family string `json:"family,omitempty" model:"upstream_dns_family"`
	// Seconds between look-ups; 0 means the time to live of the records. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	RefreshSeconds *int32 `json:"refreshSeconds,omitempty" model:"upstream_dns_refreshseconds"`
}

// BackendTLS says how the gateway verifies the certificate of a Service.
//
// +kubebuilder:validation:XValidation:rule="!has(self.insecure) || !self.insecure || !has(self.caSecret)",message="cannot be combined with caSecret: one of them accepts every certificate",fieldPath=.insecure
type BackendTLS struct {
	// The Secret with the certificate authorities (ca.crt). One of them must have signed the
	// certificate. Without it, the system's certificate authorities apply.
	// +optional
	CASecret *SecretReference `json:"caSecret,omitempty" model:"upstream_validation_cacertificate"`
	// The DNS name or IP address that the certificate must contain. A DNS name is also sent as the SNI.
	// Default: the host name of an ExternalName Service, else SERVICE.NAMESPACE.svc.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=254
	SubjectName string `json:"subjectName,omitempty" model:"upstream_validation_subjectname"`
	// Names of which the certificate must contain one, in place of subjectName: DNS names, IP addresses and
	// URIs such as spiffe://example.com/shop, separated by commas.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	AltNames string `json:"altNames,omitempty" model:"upstream_validation_altnames"`
	// Accept every certificate. Anyone on the network path can then read and change requests.
	// Default: false.
	// +optional
	Insecure bool `json:"insecure,omitempty" model:"upstream_tls_insecure"`
	// The Secret of type kubernetes.io/tls with the certificate and key that the gateway presents to
	// the Service. Without it, the gateway presents none.
	// +optional
	ClientSecret *SecretReference `json:"clientSecret,omitempty" model:"upstream_client_certificate"`
}

// HealthCheck is an active health check.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'tcp' || !(has(self.path) || has(self.host))",message="tcp is a connection, which has no path and no host",fieldPath=.type
type HealthCheck struct {
	// What a check is: a request (http), or a connection (tcp). Default: http.
	// +optional
	// +kubebuilder:validation:Enum=http;tcp
	Type string `json:"type,omitempty" model:"upstream_hc_type"`
	// The path to request. Without a path there is no health check, unless type is tcp.
	// +optional
	Path *URLPath `json:"path,omitempty" model:"upstream_hc_path"`
	// The Host header. Default: the name of Envoy's cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Host string `json:"host,omitempty" model:"upstream_hc_host"`
	// Seconds between checks. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty" model:"upstream_hc_intervalseconds"`
	// Seconds after which a check without an answer fails. Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty" model:"upstream_hc_timeoutseconds"`
	// Consecutive failed checks after which an endpoint is unhealthy. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	UnhealthyThreshold *int32 `json:"unhealthyThreshold,omitempty" model:"upstream_hc_unhealthythresholdcount"`
	// Consecutive successful checks after which an endpoint is healthy again. Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	HealthyThreshold *int32 `json:"healthyThreshold,omitempty" model:"upstream_hc_healthythresholdcount"`
}

// Connection has the settings of the connections to an endpoint.
type Connection struct {
	// Seconds to connect, including TLS. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	ConnectTimeoutSeconds *int32 `json:"connectTimeoutSeconds,omitempty" model:"upstream_connect_timeoutseconds"`
	// Seconds after which an idle connection is closed; 0 means never. Default: 4.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty" model:"upstream_idle_timeoutseconds"`
	// Seconds of silence before a connection is probed, and between probes; 0 means never.
	// Default: 30.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=7200
	KeepaliveIntervalSeconds *int32 `json:"keepaliveIntervalSeconds,omitempty" model:"upstream_keepalive_intervalseconds"`
}

// Limits bound what is concurrent (Envoy's circuit breakers).
type Limits struct {
	// Connections. Default: 4096.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxConnections *int32 `json:"maxConnections,omitempty" model:"upstream_max_connections"`
	// Requests that wait for a connection. Default: 4096.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxPending *int32 `json:"maxPending,omitempty" model:"upstream_max_pending"`
	// Requests in total. Default: 4096.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxRequests *int32 `json:"maxRequests,omitempty" model:"upstream_max_requests"`
	// Retries. Default: 4096.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxRetries *int32 `json:"maxRetries,omitempty" model:"upstream_max_retries"`
	// The percentage of the concurrent requests that may be retries (retry budget). It replaces maxRetries. 0 means no budget.
	// Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RetryBudgetPercent *int32 `json:"retryBudgetPercent,omitempty" model:"upstream_retry_budgetpercent"`
	// Concurrent retries that a retry budget always allows, however few requests there are. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	RetryBudgetMinCount *int32 `json:"retryBudgetMinCount,omitempty" model:"upstream_retry_budgetmincount"`
}

// Outlier says when an endpoint that fails is ejected: it gets no requests for some time.
type Outlier struct {
	// Consecutive failures to connect or to answer; 0 turns ejection off. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Threshold *int32 `json:"threshold,omitempty" model:"upstream_outlier_thresholdcount"`
	// Seconds for which the endpoint gets no requests. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	EjectionSeconds *int32 `json:"ejectionSeconds,omitempty" model:"upstream_outlier_ejectionseconds"`
}
