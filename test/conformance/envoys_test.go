package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"
)

// deploy creates, for each Gateway, a Deployment with an Envoy that connects under its name, and a Service in front of
// it. Both go with the Gateway.
func deploy(ctx context.Context, t *testing.T, api client.Client) {
	done := map[string]bool{}
	for {
		var list gwapi.GatewayList
		if err := api.List(ctx, &list); err != nil && ctx.Err() == nil {
			t.Logf("listing Gateways: %s", err)
		}
		for i := range list.Items {
			g := &list.Items[i]
			if g.Spec.GatewayClassName != className || done[string(g.UID)] {
				continue
			}
			ok := true
			for _, o := range []client.Object{deployment(g), service(g)} {
				if err := api.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
					t.Logf("creating the Envoys of Gateway %s: %s", g.Name, err)
					ok = false
				}
			}
			done[string(g.UID)] = ok
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// meta returns the metadata of an object of a Gateway. The start of the uid distinguishes Gateways of the same name.
func meta(g *gwapi.Gateway) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: g.Namespace, Name: "envoy-" + string(g.UID)[:8], Labels: map[string]string{gwapi.GatewayNameLabelKey: g.Name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: gwapi.GroupVersion.String(), Kind: "Gateway", Name: g.Name, UID: g.UID}},
	}
}

func deployment(g *gwapi.Gateway) *appsv1.Deployment {
	labels := map[string]string{"envoy": string(g.UID)}
	return &appsv1.Deployment{ObjectMeta: meta(g), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				AutomountServiceAccountToken: new(bool), TerminationGracePeriodSeconds: new(int64),
				Containers: []corev1.Container{{
					Name: "envoy", Image: "gatehouse:local", Args: []string{"envoy", "--", "--concurrency", "1"},
					Env: []corev1.EnvVar{
						{Name: "GATEHOUSE_PROXY", Value: g.Namespace + "." + g.Name}, {Name: "GATEHOUSE_XDS_ADDR", Value: xdsAddr},
						{Name: "GATEHOUSE_ADMIN_ADDR", Value: "0.0.0.0:9901"},
					},
					ReadinessProbe: &corev1.Probe{
						ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(9901)}}, PeriodSeconds: 1,
					},
				}},
			},
		},
	}}
}

// targetOf returns the port of the Envoy for a listener: 8080 and 8443 for listeners at 80 and 443 or, if there is none,
// for the first one; the listener's own for others.
func targetOf(g *gwapi.Gateway, l *gwapi.Listener) int32 {
	own, usual := int32(8080), int32(80)
	secure := func(p gwapi.ProtocolType) bool { return p == gwapi.HTTPSProtocolType || p == gwapi.TLSProtocolType }
	if l.Protocol == gwapi.TCPProtocolType || l.Protocol == gwapi.UDPProtocolType {
		return l.Port
	}
	if secure(l.Protocol) {
		own, usual = 8443, 443
	}
	first := int32(0)
	for _, other := range g.Spec.Listeners {
		if secure(other.Protocol) == secure(l.Protocol) && other.Protocol != gwapi.TCPProtocolType && other.Protocol != gwapi.UDPProtocolType &&
			(first == 0 || other.Port == usual) {
			first = other.Port
		}
	}
	switch l.Port {
	case first:
		return own
	case 8080, 8443:
		return l.Port + 10000
	}
	return l.Port
}

// service has the ports of the listeners.
func service(g *gwapi.Gateway) *corev1.Service {
	s := &corev1.Service{ObjectMeta: meta(g), Spec: corev1.ServiceSpec{Selector: map[string]string{"envoy": string(g.UID)}}}
	seen := map[string]bool{}
	for _, l := range g.Spec.Listeners {
		protocol, target := corev1.ProtocolTCP, targetOf(g, &l)
		if l.Protocol == gwapi.UDPProtocolType {
			protocol = corev1.ProtocolUDP
		}
		name := fmt.Sprintf("%s-%d", strings.ToLower(string(protocol)), l.Port)
		if seen[name] {
			continue
		}
		seen[name] = true
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: name, Protocol: protocol, Port: l.Port, TargetPort: intstr.FromInt32(target)})
	}
	return s
}
