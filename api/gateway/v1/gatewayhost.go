package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GatewayHost is a host name that the gateway serves, and its routes.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gwh,categories=gatehouse
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.virtualhost.fqdn`,description="The host name"
// +kubebuilder:printcolumn:name="Proxy",type=string,JSONPath=`.status.proxy`,description="The proxy that serves it"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`,description="Whether every Envoy of the proxy has it"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].reason`,description="Why it is ready or not"
// +kubebuilder:printcolumn:name="Envoys",type=integer,JSONPath=`.status.envoys`,priority=1,description="The number of Envoys that have it"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].message`,priority=1,description="What to do"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GatewayHost struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the gateway does with requests for the host.
	Spec GatewayHostSpec `json:"spec"`
	// The state of the object. The controller writes it.
	// +optional
	Status Status `json:"status,omitempty"`
}

// GatewayHostList is a list of GatewayHosts.
//
// +kubebuilder:object:root=true
type GatewayHostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GatewayHost `json:"items"`
}

// GatewayHostSpec is what the gateway does with requests for a host.
type GatewayHostSpec struct {
	// The proxy that serves the host: the name under which its Envoys connect. Empty means the
	// installation's first proxy. If the installation does not have the proxy, it ignores the
	// host, which belongs to another installation.
	// +optional
	Proxy ProxyName `json:"proxy,omitempty"`
	// The host name and its certificate.
	VirtualHost VirtualHost `json:"virtualhost"`
	// Exempts the host from the login of a GlobalConfig of type globalconfig_oauth for the proxy.
	// Default: false.
	// +optional
	Public bool `json:"public,omitempty"`
	// Filters for every route of the host: names of RouteFilters in the host's namespace. Their
	// order has no effect.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Filters []FilterReference `json:"filters,omitempty"`
	// The routes. The most specific route that matches a request receives it, wherever it is in the
	// list: exact paths, then regular expressions, then the longest prefix, then the most
	// conditions. A request that matches no route gets 404.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Routes []Route `json:"routes,omitempty"`
}

// ProxyName is the name of a proxy.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]*$`
type ProxyName string

// VirtualHost is a host name and how it is served.
//
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || (self.mode != 'tcp' && self.mode != 'udp') || (has(self.port) && self.port > 0 && self.fqdn == '*')",message="mode tcp and udp require a port, and fqdn: '*', since connections name no host",fieldPath=.mode
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'tls' || self.fqdn != '*'",message="mode tls finds the host by the name in the TLS handshake: set fqdn to a host name or *.suffix",fieldPath=.mode
// +kubebuilder:validation:XValidation:rule="!has(self.port) || self.port == 0 || (has(self.mode) && self.mode != 'http')",message="is for mode tcp, tls and udp: a host of mode http is on the ports of its proxy",fieldPath=.port
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.tls.clientCASecret) || self.fqdn != '*'",message="the gateway requests client certificates by the host name that clients connect to: set fqdn to that name instead of *",fieldPath=.tls.clientCASecret
type VirtualHost struct {
	// The host name, case-insensitive: an exact name such as shop.example.com, a
	// wildcard such as *.example.com for every name below it, or * for any host. The exact name
	// wins, then the longest wildcard. If two GatewayHosts of a proxy have the same name, the
	// older one gets it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*]|([*][.])?[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?([.][A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*)$')",message="must be a host name such as shop.example.com, *.example.com or *, without a scheme, port or path"
	FQDN string `json:"fqdn"`
	// What the host is for: http for requests, tcp for connections to a port, tls for TLS connections that
	// request the host, which are passed on without being decrypted, udp for datagrams to a port. A host of
	// a mode other than http has one route, whose path is /, and filters of type vh_filter_ipaccess only.
	// Default: http.
	// +optional
	// +kubebuilder:validation:Enum=http;tcp;tls;udp
	Mode string `json:"mode,omitempty"`
	// The port of a host of mode tcp or udp, and of mode tls; with 0, mode tls is on the HTTPS port of the
	// proxy, beside its hosts of mode http. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
	// HTTPS for the host. Without it the host is served over plain HTTP only. With mode tcp, it has the
	// certificate with which the gateway decrypts connections.
	// +optional
	TLS *TLS `json:"tls,omitempty"`
}

// TLS is the certificate of a host and what it means for requests.
//
// +kubebuilder:validation:XValidation:rule="!has(self.https) || self.https == 'both' || has(self.secretName) || has(self.additionalSecrets) || (has(self.external) && self.external)",message="redirect and only need a certificate: name its Secret in secretName, or write external: true if a load balancer in front of the gateway has it",fieldPath=.https
// +kubebuilder:validation:XValidation:rule="!has(self.clientCASecret) || has(self.secretName) || has(self.additionalSecrets) || (has(self.external) && self.external)",message="clients present a certificate only to a host that has one itself: name its Secret in secretName",fieldPath=.clientCASecret
// +kubebuilder:validation:XValidation:rule="!has(self.secretNamespace) || has(self.secretName)",message="is the namespace of secretName, which is missing",fieldPath=.secretNamespace
// +kubebuilder:validation:XValidation:rule="!has(self.hstsSubdomains) || !self.hstsSubdomains || (has(self.hstsSeconds) && self.hstsSeconds > 0)",message="requires hstsSeconds: without it the header is not sent",fieldPath=.hstsSubdomains
type TLS struct {
	// The Secret with the certificate and its key, of type kubernetes.io/tls.
	// +optional
	SecretName ObjectName `json:"secretName,omitempty"`
	// The namespace of the Secret. Empty means the namespace of the GatewayHost. Another namespace
	// needs a ReferenceGrant in it.
	// +optional
	SecretNamespace Namespace `json:"secretNamespace,omitempty"`
	// Further Secrets of this type: certificates with another type of key, or for other names below a
	// wildcard.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	AdditionalSecrets []SecretReference `json:"additionalSecrets,omitempty"`
	// Set it if a load balancer in front of the gateway has the certificate, so that the gateway needs
	// none. Default: false.
	// +optional
	External bool `json:"external,omitempty"`
	// What happens to a request over plain HTTP: both serves it, redirect redirects the client to
	// https, only answers 403. Default: both.
	// +optional
	// +kubebuilder:validation:Enum=both;redirect;only
	HTTPS string `json:"https,omitempty"`
	// Seconds for which a browser that used HTTPS avoids plain HTTP (Strict-Transport-Security).
	// Default: 0, which sends no header.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=315360000
	HSTSSeconds *int32 `json:"hstsSeconds,omitempty" model:"hsts_seconds"`
	// Adds includeSubDomains: the header then applies to all subdomains of the host too. Requires hstsSeconds. Default: false.
	// +optional
	HSTSSubdomains bool `json:"hstsSubdomains,omitempty" model:"hsts_subdomains"`
	// The Secret with the certificate authorities (ca.crt). One of them must have signed a client's
	// certificate. Without it, clients need no certificate.
	// +optional
	ClientCASecret *SecretReference `json:"clientCASecret,omitempty" model:"client_validation_cacertificate"`
}

// FilterReference names a RouteFilter in the same namespace.
type FilterReference struct {
	// The metadata.name of the RouteFilter.
	Name ObjectName `json:"name"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// The name of the Secret.
	Name ObjectName `json:"name"`
	// The namespace of the Secret. Empty means the namespace of the object that names it. Another namespace
	// needs a ReferenceGrant in it.
	// +optional
	Namespace Namespace `json:"namespace,omitempty"`
}

// ObjectName is the name of a Kubernetes object.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type ObjectName string

// Namespace is the name of a namespace.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
type Namespace string

// GetStatus returns the status, to be written.
func (h *GatewayHost) GetStatus() *Status { return &h.Status }
