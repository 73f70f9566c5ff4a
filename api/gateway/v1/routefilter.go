package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RouteFilter is a filter for requests. GatewayHosts in its namespace name it, for one route or for
// all of their routes.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
	Spec RouteFilterSpec `json:"spec"`
	// The state of the object. The controller writes it.
	// +optional
	Status Status `json:"status,omitempty"`
}

// RouteFilterList is a list of RouteFilters.
//
// +kubebuilder:object:root=true
type RouteFilterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RouteFilter `json:"items"`
}

// RouteFilterSpec is the type of a filter and its configuration.
type RouteFilterSpec struct {
	// A display name. GatewayHosts name the filter by metadata.name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string          `json:"name,omitempty"`
	Type RouteFilterType `json:"type"`
	// The configuration of the type.
	RouteFilterConfig RouteFilterConfig `json:"routeFilterConfig"`
}

// RouteFilterConfig holds the configuration of a filter.
type RouteFilterConfig struct {
	// A JSON object in a string. The Accepted condition reports what is wrong with it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	Config string `json:"config"`
}

// GetStatus returns the status, to be written.
func (f *RouteFilter) GetStatus() *Status { return &f.Status }
