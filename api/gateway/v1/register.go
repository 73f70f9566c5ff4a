package v1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of the kinds.
const Group = "gateway.gatehouse.dev"

// The kinds.
const (
	KindGatewayHost    = "GatewayHost"
	KindRouteFilter    = "RouteFilter"
	KindGlobalConfig   = "GlobalConfig"
	KindReferenceGrant = "ReferenceGrant"
	KindConsumer       = "Consumer"
)

// GroupVersion is the group and version of this package.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: "v1"} }

// Resource is the name of a kind in the API and in rules of RBAC.
func Resource(kind string) string { return strings.ToLower(kind) + "s" }

// AddToScheme registers the kinds in a scheme, as a client needs it.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&GatewayHost{}, &GatewayHostList{}, &RouteFilter{}, &RouteFilterList{},
		&GlobalConfig{}, &GlobalConfigList{}, &ReferenceGrant{}, &ReferenceGrantList{},
		&Consumer{}, &ConsumerList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
