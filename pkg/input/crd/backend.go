package crd

import (
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
)

// service makes a Service for an address: an ExternalName for a DNS name, a headless one with an
// EndpointSlice for an IP address. fault says why there is none; it follows the address' field
// in a sentence.
func (e *exporter) service(m metav1.ObjectMeta, address string, port int) (fault string) {
	number := int32(port) //nolint:gosec // a port
	s := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: m,
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{
			Port: number, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(number),
		}}},
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		host := canonicalHost(address)
		if len(validation.IsDNS1123Subdomain(host)) > 0 {
			return strconv.Quote(address) + " is not a host name that Kubernetes accepts: only letters, digits, " +
				"hyphens and dots are possible"
		}
		if why := e.foreign(host, port, (*egress.Foreign).Name); why != "" {
			return why
		}
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, host
		if host != address {
			annotate(&s.ObjectMeta, gatewayv1.AnnotationAddress, address)
		}
		e.out.Services = append(e.out.Services, s)
		return ""
	}
	switch {
	case ip.IsLoopback():
		return address + " is the machine itself, which in a cluster is the Pod of the gateway, and Kubernetes refuses it: " +
			"write an address that its nodes reach, or a host name"
	case ip.IsUnspecified(), ip.IsLinkLocalUnicast(), ip.IsMulticast(), ip.Is4In6():
		return address + " is an address that Kubernetes refuses for endpoints: write one that its nodes reach, " +
			"or a host name"
	}
	if why := e.foreign(address, port, (*egress.Foreign).Endpoint); why != "" {
		return why
	}
	s.Spec.ClusterIP = corev1.ClusterIPNone
	if ip.String() != address {
		annotate(&s.ObjectMeta, gatewayv1.AnnotationAddress, address)
	}
	e.out.Services = append(e.out.Services, s)
	e.out.Slices = append(e.out.Slices, slice(s, ip, number))
	return ""
}

// foreign says why the control plane of a cluster refuses an address that its rules for addresses of tenants find
// wrong.
func (e *exporter) foreign(address string, port int, find func(*egress.Foreign, string, int) string) string {
	if _, _, ok := egress.ServiceOf(address, ""); ok {
		return "" // it stands for the Service
	}
	why := find(&egress.Foreign{Allow: e.options.Allow}, address, port)
	if why == "" {
		return ""
	}
	return strconv.Quote(address) + " " + why +
		", and the control plane of a cluster refuses it: change it, or name it in --upstream-allow, here and there"
}

func slice(s *corev1.Service, ip netip.Addr, port int32) *discoveryv1.EndpointSlice {
	kind, ready, protocol, unnamed := discoveryv1.AddressTypeIPv4, true, corev1.ProtocolTCP, ""
	if ip.Is6() {
		kind = discoveryv1.AddressTypeIPv6
	}
	return &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name, Namespace: s.Namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: gatewayv1.Group},
		},
		AddressType: kind,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: &unnamed, Port: &port, Protocol: &protocol}},
	}
}

// canonicalHost returns a DNS name as Kubernetes writes it.
func canonicalHost(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
