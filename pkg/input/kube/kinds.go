package kube

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// kind is a kind of objects that is watched.
type kind struct {
	gvk schema.GroupVersionKind
	// object is an empty object of the type that is watched.
	object client.Object
	// needed says that nothing can be served before the kind was read once. Without GatewayHosts,
	// Services or EndpointSlices, connected Envoys would lose what they have; without GlobalConfigs,
	// they would open what a login protects.
	needed bool
	// without describes the consequences if the kind cannot be read.
	without string
	// slim drops the fields that are not read, from an object that nothing else uses yet.
	slim func(client.Object)
}

// resource returns the name of the kind in RBAC rules.
func (k kind) resource() string { return gatewayv1.Resource(k.gvk.Kind) }

// kinds returns all kinds that are watched, in the order of messages about them.
func kinds() []kind {
	own := gatewayv1.GroupVersion()
	core := corev1.SchemeGroupVersion
	secret := secretMetadata()
	return []kind{
		{
			gvk: own.WithKind(gatewayv1.KindGatewayHost), object: &gatewayv1.GatewayHost{}, needed: true,
			without: "no Envoy is answered",
		},
		{
			gvk: own.WithKind(gatewayv1.KindGlobalConfig), object: &gatewayv1.GlobalConfig{}, needed: true,
			without: "no Envoy is answered, because the services that require a login are unknown",
		},
		{
			gvk: own.WithKind(gatewayv1.KindRouteFilter), object: &gatewayv1.RouteFilter{},
			without: "routes and hosts with a filter are closed",
		},
		{
			gvk: own.WithKind(gatewayv1.KindReferenceGrant), object: &gatewayv1.ReferenceGrant{},
			without: "references to other namespaces are refused",
		},
		{
			gvk: core.WithKind("Service"), object: &corev1.Service{}, needed: true, without: "no Envoy is answered",
			slim: slimService,
		},
		{
			gvk: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), object: &discoveryv1.EndpointSlice{}, needed: true,
			without: "no Envoy is answered", slim: slimSlice,
		},
		{
			gvk: core.WithKind("Secret"), object: secret,
			without: "Secrets are fetched one by one every 20 s if that is allowed, and what needs one is closed otherwise",
		},
	}
}

// secretMetadata returns an empty Secret of which only the metadata is watched.
func secretMetadata() *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(translate.KindSecret))
	return secret
}

func slimService(o client.Object) {
	s := o.(*corev1.Service)
	s.Status = corev1.ServiceStatus{}
	s.Spec.Selector = nil
}

func slimSlice(o client.Object) {
	s := o.(*discoveryv1.EndpointSlice)
	s.Annotations = nil
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		e.TargetRef, e.NodeName, e.Hostname, e.DeprecatedTopology = nil, nil, nil, nil
	}
}

// transform is applied to each object before an informer keeps it.
func (k kind) transform(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(nil)
	if a := o.GetAnnotations(); a != nil {
		delete(a, corev1.LastAppliedConfigAnnotation)
	}
	if k.slim != nil {
		k.slim(o)
	}
	return obj, nil
}

// scheme returns the types of all kinds.
func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, discoveryv1.AddToScheme, gatewayv1.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// mapper knows the resources of the kinds without a request to the API server. For a resource that the
// server does not have, the answer is 404, and the request is repeated.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range kinds() {
		r := k.gvk.GroupVersion().WithResource(k.resource())
		m.AddSpecific(k.gvk, r, r, meta.RESTScopeNamespace)
		m.AddSpecific(k.gvk.GroupVersion().WithKind(k.gvk.Kind+"List"), r, r, meta.RESTScopeNamespace) // the cache uses it
	}
	return m
}
