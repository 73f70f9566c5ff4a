package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Status is the state of an object.
type Status struct {
	// The generation of the object that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// The proxy that serves the object. Empty means all proxies of the installation.
	// +optional
	Proxy string `json:"proxy,omitempty"`
	// The installation that writes this status: the namespace and name of its Lease. Others leave it alone
	// while that Lease is held.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Controller string `json:"controller,omitempty"`
	// The number of Envoys that have the object.
	// +optional
	Envoys *int32 `json:"envoys,omitempty"`
	// Accepted: whether the object can be used. ResolvedRefs: whether every object that it names
	// exists and may be named. Programmed: whether every Envoy of its proxy has it.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The types of conditions.
const (
	// ConditionAccepted: False means that a fixed 503 replaces the object, or a part of it.
	ConditionAccepted = "Accepted"
	// ConditionResolvedRefs: False means that an object that it names does not exist, or must not
	// be named from its namespace.
	ConditionResolvedRefs = "ResolvedRefs"
	// ConditionProgrammed: True means that every Envoy of the proxy, at every replica, has
	// acknowledged the observed generation. Unknown means that a replica is not heard.
	ConditionProgrammed = "Programmed"
)
