package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GlobalConfig is a setting for a proxy, or for all proxies of the installation: the limits of a
// rate-limit domain, a login for every host, or a filter for every host.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
	Spec GlobalConfigSpec `json:"spec"`
	// The state of the object. The controller writes it.
	// +optional
	Status Status `json:"status,omitempty"`
}

// GlobalConfigList is a list of GlobalConfigs.
//
// +kubebuilder:object:root=true
type GlobalConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GlobalConfig `json:"items"`
}

// GlobalConfigSpec is a setting for a proxy.
//
// +kubebuilder:validation:XValidation:rule="!has(self.exempt) || !self.type.startsWith('globalconfig_')",message="is for the types of filters",fieldPath=.exempt
type GlobalConfigSpec struct {
	// A display name. It has no effect.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string           `json:"name,omitempty"`
	Type GlobalConfigType `json:"type"`
	// The configuration of the type: a JSON object in a string. The Accepted condition reports what is
	// wrong with it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1048576
	Config string `json:"config"`
	// The proxy that it applies to. Empty means all proxies of the installation. If the installation
	// does not have the proxy, it ignores the object, which belongs to another installation.
	// +optional
	Proxy ProxyName `json:"proxy,omitempty"`
	// For the types of filters: the hosts that the filter does not apply to.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Exempt []ExemptHost `json:"exempt,omitempty"`
}

// ExemptHost is a GatewayHost, or some of its routes, that a filter of the proxy does not apply to.
type ExemptHost struct {
	// The namespace of the GatewayHost.
	Namespace Namespace `json:"namespace"`
	// The name of the GatewayHost.
	Name ObjectName `json:"name"`
	// The names of its routes that are exempt. Empty means all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Routes []string `json:"routes,omitempty"`
}

// GetStatus returns the status, to be written.
func (g *GlobalConfig) GetStatus() *Status { return &g.Status }
