package translate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/mapping"
)

// wish is a Service that an object names, with the settings for connections to it.
type wish struct {
	// at is the path of the field that names it, portAt that of its port, settingsAt that of its
	// settings.
	at, portAt, settingsAt string
	ref                    Ref
	port                   intstr.IntOrString
	settings               gatewayv1.BackendSettings
	// weight is the share of the requests; nil means the default.
	weight *int32
	// place identifies this use of the Service. A use with a weight of its own, or repeated in its
	// route, gets an upstream of its own, so that a new weight changes only that upstream.
	place    string
	repeated bool
	// protocol applies if the settings name none; empty means the Service's protocol.
	protocol string
	// grpc says that a port without a protocol speaks HTTP/2 without TLS.
	grpc bool
	// protocolOfPort is the protocol of the Service's port; empty means TCP.
	protocolOfPort corev1.Protocol
	// subject is the name that a certificate must contain if the settings do not specify it; empty
	// means the address.
	subject string
}

// fate is the result of a wish.
type fate int

const (
	granted  fate = iota
	missing       // there is no backend
	unusable      // it exists, but not with the required protocol or settings
)

// upstream makes the upstream of a Service's port and returns its name.
func (s *scope) upstream(w wish) (name string, f fate) {
	svc := s.service(w.at, w.ref)
	if svc == nil {
		return "", missing
	}
	port, number, fault := portOf(svc, w.port, w.protocolOfPort)
	if fault != "" {
		s.problem(w.portAt, RefNotFound, "%s %s", w.ref, fault)
		return "", missing
	}
	named := w.ref
	if ref, ok := s.aliasOf(svc); ok {
		if svc = s.target(w, ref); svc == nil {
			return "", missing
		}
		w.ref = ref
		if port, number, fault = portOf(svc, intstr.FromInt(number), w.protocolOfPort); fault != "" {
			s.problem(w.portAt, RefNotFound, "%s %s", w.ref, fault)
			return "", missing
		}
	}
	u := model.NewUpstream()
	u.IP, u.Port, u.Protocol = w.ref.Name+"."+w.ref.Namespace+".svc", number, mapping.Protocol(port.AppProtocol)
	var from *backend
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		// With the final dot, the search domains of Envoy's resolver, such as those of its Pod, do not apply.
		u.IP = strings.TrimSuffix(svc.Spec.ExternalName, ".") + "."
	} else {
		from = &backend{
			service: w.ref, port: port.Name, number: cmp.Or(port.TargetPort.IntValue(), number), protocol: w.protocolOfPort,
		}
	}
	if w.grpc && port.AppProtocol == nil {
		w.protocol = cmp.Or(w.protocol, "h2c")
	}
	plain := *u
	nameCertificate(&plain, from, "")
	u.Protocol = cmp.Or(w.protocol, u.Protocol)
	mapping.ReadBackend(&gatewayv1.Backend{BackendSettings: w.settings}, w.settingsAt, u, s.secretOf)
	nameCertificate(u, from, w.subject)
	if !s.applyPolicy(w, slices.Compact([]Ref{named, w.ref}), port.Name, u) {
		return "", unusable
	}
	variant := variantOf(plain, *u, w)
	if w.protocolOfPort == corev1.ProtocolUDP { // whose ports have numbers of their own
		variant = strings.TrimPrefix(variant+"-udp", "-")
	}
	u.Name = upstreamName(w.ref.Namespace, w.ref.Name, number, variant)
	if w.weight != nil {
		u.Weight = int(*w.weight)
	}
	wrong := u.Validate()
	for _, e := range wrong {
		s.problem(upstreamField(w, e.Field), Invalid, "%s", e.Message)
	}
	if len(wrong) > 0 {
		return "", unusable
	}
	s.make(u, w.at)
	made := s.made[u.Key()]
	made.backend = from
	s.made[u.Key()] = made
	return u.Name, granted
}

// aliasOf returns the Service that an ExternalName Service names by its DNS name in the cluster.
func (s *scope) aliasOf(svc *corev1.Service) (ref Ref, ok bool) {
	if svc.Spec.Type != corev1.ServiceTypeExternalName {
		return ref, false
	}
	namespace, name, ok := egress.ServiceOf(svc.Spec.ExternalName, s.world.ClusterDomain)
	return Ref{KindService, namespace, name}, ok
}

// target returns the Service that an alias names; nil, with a problem, if the object must not name it. A chain of
// aliases could lead through namespaces that the first one may not name.
func (s *scope) target(w wish, ref Ref) *corev1.Service {
	svc := s.service(w.at, ref)
	if svc != nil && svc.Spec.Type == corev1.ServiceTypeExternalName {
		s.problem(w.at, Invalid, "%s names %s, which is an ExternalName Service too: name what that one names", w.ref, ref)
		return nil
	}
	return svc
}

// nameCertificate sets the name that the certificate of an upstream must contain, if its settings do
// not. For a discovered upstream it cannot be the address, which is a Pod's.
func nameCertificate(u *model.Upstream, from *backend, subject string) {
	if !u.SpeaksTLS() || u.ValidationSubjectName != "" {
		return
	}
	u.ValidationSubjectName = subject
	if from != nil && subject == "" {
		u.ValidationSubjectName = u.IP
	}
}

// variantOf distinguishes an upstream with its own settings from the Service's plain one. Empty means
// that it has none.
func variantOf(plain, u model.Upstream, w wish) string {
	own := w.repeated || w.weight != nil && int(*w.weight) != u.Weight
	if !own && reflect.DeepEqual(plain, u) {
		return ""
	}
	settings, err := json.Marshal(u)
	if err != nil {
		return hash(fmt.Sprintf("%+v", u)) // an upstream consists of text and numbers
	}
	if own {
		return hash(string(settings), w.place)
	}
	return hash(string(settings))
}

// portOf finds a port of a Service and its number. fault says why there is none; it follows the name of
// the Service in a sentence. An ExternalName Service need not list its ports. An empty protocol is TCP.
func portOf(
	svc *corev1.Service, wanted intstr.IntOrString, protocol corev1.Protocol,
) (port corev1.ServicePort, number int, fault string) {
	protocol = cmp.Or(protocol, corev1.ProtocolTCP)
	var have []string
	for _, p := range svc.Spec.Ports {
		if cmp.Or(p.Protocol, corev1.ProtocolTCP) != protocol {
			continue
		}
		if wanted.Type == intstr.Int && p.Port == wanted.IntVal || wanted.Type == intstr.String && p.Name == wanted.StrVal {
			return p, int(p.Port), ""
		}
		text := strconv.Itoa(int(p.Port))
		if p.Name != "" {
			text += " (" + p.Name + ")"
		}
		have = append(have, text)
	}
	switch {
	case svc.Spec.Type == corev1.ServiceTypeExternalName && wanted.Type == intstr.Int && wanted.IntVal > 0:
		return corev1.ServicePort{Port: wanted.IntVal}, int(wanted.IntVal), ""
	case len(have) == 0:
		return port, 0, fmt.Sprintf("has no %s port", protocol)
	}
	return port, 0, fmt.Sprintf("has no %s port %s; it has %s", protocol, wanted.String(), strings.Join(have, ", "))
}

// secretRef returns the Secret that a reference names.
func (s *scope) secretRef(r gatewayv1.SecretReference) Ref {
	return Ref{KindSecret, cmp.Or(string(r.Namespace), s.of.Namespace), string(r.Name)}
}

// secretOf makes the secret for a Secret that is named at a path, and returns its name. The names of fields for
// certificate authorities end with CASecret; the others are for a certificate with its key.
func (s *scope) secretOf(path string, r gatewayv1.SecretReference) string {
	p := forPair
	if strings.HasSuffix(strings.ToLower(path), "casecret") {
		p = forAuthorities
	}
	name, _ := s.secret(path, s.secretRef(r), p)
	return name
}

// upstreamField returns the field of a wish that a field of the upstream comes from.
func upstreamField(w wish, field string) string {
	if field == "Upstream_port" {
		return w.portAt
	}
	if path := mapping.BackendField(field); path != "" {
		return w.settingsAt + path
	}
	return w.at
}
