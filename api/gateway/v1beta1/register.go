package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
)

// GroupVersion is the group and version of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: v1.Group, Version: "v1beta1"}
}

// AddToScheme registers the kinds in a scheme, as a client needs it.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&GatewayHost{}, &GatewayHostList{}, &RouteFilter{}, &RouteFilterList{},
		&GlobalConfig{}, &GlobalConfigList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
