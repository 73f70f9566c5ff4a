package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Status is what became of an object.
type Status struct {
	// The generation of the object that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// The proxy that serves the object. Empty means all of the installation's.
	// +optional
	Proxy string `json:"proxy,omitempty"`
	// How many Envoys have it.
	// +optional
	Envoys *int32 `json:"envoys,omitempty"`
	// Accepted: whether it can be used. ResolvedRefs: whether everything that it names exists and
	// may be named. Programmed: whether every Envoy of its proxy has it.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The types of conditions.
const (
	// ConditionAccepted: False means that the object, or a part of it, is closed: a fixed 503
	// stands in its place.
	ConditionAccepted = "Accepted"
	// ConditionResolvedRefs: False means that something it names does not exist, or must not be
	// named from its namespace.
	ConditionResolvedRefs = "ResolvedRefs"
	// ConditionProgrammed: True means that every Envoy of the proxy, at every replica, has
	// acknowledged the observed generation. Unknown means that a replica is not heard.
	ConditionProgrammed = "Programmed"
)
