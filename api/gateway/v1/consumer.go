package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Consumer is a person or program that calls hosts, with the credentials by which it is known. Its credentials and
// groups are those of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gwcon,categories=gatehouse
// +kubebuilder:printcolumn:name="Groups",type=string,JSONPath=`.spec.groups`,description="Its groups"
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether it has all its credentials"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`,description="Whether every Envoy has it"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].reason`,description="Why it is ready or not"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].message`,priority=1,description="What to do"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Consumer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The groups and credentials.
	Spec ConsumerSpec `json:"spec"`
	// The state of the object. The controller writes it.
	// +optional
	Status Status `json:"status,omitempty"`
}

// ConsumerList is a list of Consumers.
//
// +kubebuilder:object:root=true
type ConsumerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Consumer `json:"items"`
}

// ConsumerSpec has the groups and credentials of a consumer.
//
// +kubebuilder:validation:XValidation:rule="(has(self.keys) ? self.keys.size() : 0) + (has(self.users) ? self.users.size() : 0) <= 50",message="a consumer has at most 50 credentials: keys and users together",fieldPath=.keys
type ConsumerSpec struct {
	// Words by which filters of the namespace allow, deny and limit consumers. Outside it, gold is gold@NAMESPACE.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Groups []GroupName `json:"groups,omitempty"`
	// API keys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Keys []ConsumerKey `json:"keys,omitempty"`
	// Users with a password.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Users []ConsumerUser `json:"users,omitempty"`
}

// GroupName is the name of a group.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:/-]+$`
type GroupName string

// ConsumerKey is an API key. It belongs to one Consumer; a second one that names it does not have it.
type ConsumerKey struct {
	// The Secret in the namespace that is the key set.
	SecretName ObjectName `json:"secretName"`
	// The name of the key: an entry of the Secret. It need not exist.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	Key string `json:"key"`
}

// ConsumerUser is a user with a password. It belongs to one Consumer; a second one that names it does not have it.
type ConsumerUser struct {
	// The RouteFilter in the namespace that has the user, of type http_filter_basicauth or http_filter_anyof.
	Filter ObjectName `json:"filter"`
	// The name of the user. It need not exist.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	User string `json:"user"`
}

// GetStatus returns the status, to be written.
func (c *Consumer) GetStatus() *Status { return &c.Status }
