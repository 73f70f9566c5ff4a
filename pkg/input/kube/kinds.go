package kube

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"

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
	// optional says that the kind is read if the API server has it, and else silently missed.
	optional bool
	// global says that its objects have no namespace.
	global bool
	// name distinguishes it from another kind of the same name; empty means that none has.
	name string
	// slim drops the fields that are not read, from an object that nothing else uses yet.
	slim func(client.Object)
}

// resource returns the name of the kind in RBAC rules.
func (k kind) resource() string {
	switch name := strings.ToLower(k.gvk.Kind); {
	case strings.HasSuffix(name, "s"):
		return name + "es"
	case strings.HasSuffix(name, "policy"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return gatewayv1.Resource(k.gvk.Kind)
}

// id is the name of the kind in a translate.Ref.
func (k kind) id() string { return cmp.Or(k.name, k.gvk.Kind) }

// kinds returns all kinds that are watched, in the order of messages about them.
func kinds() []kind {
	own := gatewayv1.GroupVersion()
	core := corev1.SchemeGroupVersion
	secret := metadataOf(translate.KindSecret)
	return append([]kind{
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
			gvk: own.WithKind(gatewayv1.KindConsumer), object: &gatewayv1.Consumer{}, optional: true,
			without: "there are no consumers, and routes that require one refuse all requests",
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
	}, gatewayAPIKinds()...)
}

// gatewayAPIKinds returns the kinds of the Gateway API, which a cluster need not have.
func gatewayAPIKinds() []kind {
	api := schema.GroupVersion(gwapi.GroupVersion)
	const without = "nothing of the Gateway API is served"
	return []kind{
		{gvk: api.WithKind(translate.KindGatewayClass), object: &gwapi.GatewayClass{}, global: true, optional: true, without: without},
		{gvk: api.WithKind(translate.KindGateway), object: &gwapi.Gateway{}, optional: true, without: without},
		{gvk: api.WithKind(translate.KindListenerSet), object: &gwapi.ListenerSet{}, optional: true, without: "ListenerSets are not served"},
		{gvk: api.WithKind(translate.KindHTTPRoute), object: &gwapi.HTTPRoute{}, optional: true, without: without},
		{gvk: api.WithKind(translate.KindGRPCRoute), object: &gwapi.GRPCRoute{}, optional: true, without: "GRPCRoutes are not served"},
		{gvk: api.WithKind(translate.KindTLSRoute), object: &gwapi.TLSRoute{}, optional: true, without: "TLSRoutes are not served"},
		{gvk: api.WithKind(translate.KindTCPRoute), object: &gwapi.TCPRoute{}, optional: true, without: "TCPRoutes are not served"},
		{gvk: api.WithKind(translate.KindUDPRoute), object: &gwapi.UDPRoute{}, optional: true, without: "UDPRoutes are not served"},
		{
			gvk: api.WithKind(translate.KindBackendTLSPolicy), object: &gwapi.BackendTLSPolicy{}, optional: true,
			without: "connections to Services are made without TLS where a BackendTLSPolicy requires it",
		},
		{
			gvk: corev1.SchemeGroupVersion.WithKind(translate.KindConfigMap), object: metadataOf(translate.KindConfigMap), optional: true,
			without: "Services whose BackendTLSPolicy names a ConfigMap are closed if it cannot be fetched",
		},
		{
			gvk: api.WithKind("ReferenceGrant"), object: &gwapi.ReferenceGrant{}, name: translate.KindAPIGrant, optional: true,
			without: "references of the Gateway API to other namespaces are refused",
		},
		{
			gvk: corev1.SchemeGroupVersion.WithKind(translate.KindNamespace), object: metadataOf(translate.KindNamespace), global: true, optional: true,
			without: "listeners take no routes of namespaces that they select by labels",
		},
	}
}

// metadataOf returns an empty object of a core kind of which only the metadata is watched.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return o
}

func slimService(o client.Object) {
	s := o.(*corev1.Service)
	if translate.FrontOf(s) == "" {
		s.Status = corev1.ServiceStatus{}
	}
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
		corev1.AddToScheme, discoveryv1.AddToScheme, gatewayv1.AddToScheme, gwapi.Install, metav1.AddMetaToScheme,
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
		var scope meta.RESTScope = meta.RESTScopeNamespace
		if k.global {
			scope = meta.RESTScopeRoot
		}
		m.AddSpecific(k.gvk, r, r, scope)
		m.AddSpecific(k.gvk.GroupVersion().WithKind(k.gvk.Kind+"List"), r, r, scope) // the cache uses it
	}
	return m
}
