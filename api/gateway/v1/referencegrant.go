package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReferenceGrant lets objects in other namespaces name Secrets and Services in its own namespace.
// Without a grant they cannot.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=gwrg,categories=gatehouse
type ReferenceGrant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which objects may name what.
	Spec ReferenceGrantSpec `json:"spec"`
}

// ReferenceGrantList is a list of ReferenceGrants.
//
// +kubebuilder:object:root=true
type ReferenceGrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReferenceGrant `json:"items"`
}

// ReferenceGrantSpec says which objects may name what.
type ReferenceGrantSpec struct {
	// The objects that get the permission. One matching entry is enough.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	From []ReferenceGrantFrom `json:"from"`
	// What they may name in the namespace of the ReferenceGrant. One matching entry is enough.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	To []ReferenceGrantTo `json:"to"`
}

// ReferenceGrantFrom is all objects of a kind in a namespace.
type ReferenceGrantFrom struct {
	// The kind of the objects: GatewayHost, RouteFilter or GlobalConfig.
	// +kubebuilder:validation:Enum=GatewayHost;RouteFilter;GlobalConfig
	Kind string `json:"kind"`
	// Their namespace.
	Namespace Namespace `json:"namespace"`
}

// ReferenceGrantTo is what may be named.
type ReferenceGrantTo struct {
	// The kind: Secret or Service.
	// +kubebuilder:validation:Enum=Secret;Service
	Kind string `json:"kind"`
	// The name of one object. Empty means every object of the kind.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}
