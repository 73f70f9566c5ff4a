package translate

import (
	"cmp"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// backend is where the endpoints of an upstream come from: the ports with one name in the
// EndpointSlices of a Service.
type backend struct {
	service Ref
	port    string
	// number is the port for an EndpointSlice that does not set it.
	number int
	// protocol is that of the port; empty means TCP.
	protocol corev1.Protocol
}

// sameService reports whether two versions of a Service are equal in the fields that are read.
func sameService(a, b *corev1.Service) bool {
	return a.Spec.Type == b.Spec.Type && a.Spec.ExternalName == b.Spec.ExternalName &&
		reflect.DeepEqual(a.Spec.Ports, b.Spec.Ports) && reflect.DeepEqual(a.Spec.IPFamilies, b.Spec.IPFamilies) &&
		a.Annotations[gatewayv1.AnnotationUpstream] == b.Annotations[gatewayv1.AnnotationUpstream]
}

func sameSlice(a, b *discoveryv1.EndpointSlice) bool {
	return a.AddressType == b.AddressType && reflect.DeepEqual(a.Ports, b.Ports) &&
		reflect.DeepEqual(a.Endpoints, b.Endpoints)
}

// endpointsOf returns the endpoints of a backend; none while there is no EndpointSlice. If a
// Service has addresses of both families, they are those of its first family, or those of the
// other if there are none.
func (w *World) endpointsOf(b backend) *model.Endpoints {
	byType := map[discoveryv1.AddressType][]model.Endpoint{}
	for _, slice := range w.slices[b.service] {
		for _, port := range portsOf(slice, b) {
			for _, e := range slice.Endpoints {
				if e, ok := endpointOf(e, port); ok {
					byType[slice.AddressType] = append(byType[slice.AddressType], e)
				}
			}
		}
	}
	order := []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}
	if svc := w.services[b.service]; svc != nil && len(svc.Spec.IPFamilies) > 0 &&
		svc.Spec.IPFamilies[0] == corev1.IPv6Protocol {
		order[0], order[1] = order[1], order[0]
	}
	first := model.NewEndpoints(byType[order[0]]...)
	if len(first.All()) > 0 {
		return first
	}
	return model.NewEndpoints(byType[order[1]]...)
}

// portsOf lists the ports of a slice that belong to the backend.
func portsOf(slice *discoveryv1.EndpointSlice, b backend) (ports []int) {
	for _, p := range slice.Ports {
		switch {
		case p.Name != nil && *p.Name != b.port, p.Name == nil && b.port != "":
		case p.Protocol != nil && *p.Protocol != cmp.Or(b.protocol, corev1.ProtocolTCP),
			p.Protocol == nil && b.protocol == corev1.ProtocolUDP:
		case p.Port == nil:
			ports = append(ports, b.number)
		default:
			ports = append(ports, int(*p.Port))
		}
	}
	return ports
}

// endpointOf returns the endpoint for an entry of an EndpointSlice; false means that it receives
// no request.
func endpointOf(e discoveryv1.Endpoint, port int) (model.Endpoint, bool) {
	if len(e.Addresses) == 0 {
		return model.Endpoint{}, false
	}
	// An unset field means ready (discovery/v1, EndpointConditions).
	ready := e.Conditions.Ready == nil || *e.Conditions.Ready
	serving := e.Conditions.Serving == nil && ready || e.Conditions.Serving != nil && *e.Conditions.Serving
	terminating := e.Conditions.Terminating != nil && *e.Conditions.Terminating
	zone := ""
	if e.Zone != nil {
		zone = *e.Zone
	}
	return model.EndpointOf(e.Addresses[0], port, zone, ready, serving, terminating)
}
