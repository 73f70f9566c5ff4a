package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
)

// GatewayHost is a host name that the gateway serves, and its routes.
//
// +kubebuilder:object:root=true
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
	Spec v1.GatewayHostSpec `json:"spec"`
	// The state of the object. The controller writes it.
	// +optional
	Status v1.Status `json:"status,omitempty"`
}

// GatewayHostList is a list of GatewayHosts.
//
// +kubebuilder:object:root=true
type GatewayHostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GatewayHost `json:"items"`
}

// RouteFilter is a filter for requests. GatewayHosts in its namespace name it, for one route or for
// all of their routes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gwf,categories=gatehouse
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="What it does"
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether it can be used"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`,description="Whether every Envoy has it"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].reason`,description="Why it is ready or not"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].message`,priority=1,description="What to do"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RouteFilter struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The type of the filter and its configuration.
	Spec v1.RouteFilterSpec `json:"spec"`
	// The state of the object. The controller writes it.
	// +optional
	Status v1.Status `json:"status,omitempty"`
}

// RouteFilterList is a list of RouteFilters.
//
// +kubebuilder:object:root=true
type RouteFilterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RouteFilter `json:"items"`
}

// GlobalConfig is a setting for a proxy, or for all proxies of the installation: the limits of a
// rate-limit domain, a login for every host, or a filter for every host.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gwc,categories=gatehouse
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="What it sets"
// +kubebuilder:printcolumn:name="Proxy",type=string,JSONPath=`.spec.proxy`,description="The proxy that it applies to; empty: all"
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether it can be used"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`,description="Whether every Envoy has it"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].reason`,description="Why it is ready or not"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].message`,priority=1,description="What to do"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GlobalConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The setting.
	Spec v1.GlobalConfigSpec `json:"spec"`
	// The state of the object. The controller writes it.
	// +optional
	Status v1.Status `json:"status,omitempty"`
}

// GlobalConfigList is a list of GlobalConfigs.
//
// +kubebuilder:object:root=true
type GlobalConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GlobalConfig `json:"items"`
}
