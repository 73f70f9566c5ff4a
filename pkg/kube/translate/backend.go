package translate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
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
	port, number, fault := portOf(svc, w.port)
	if fault != "" {
		s.problem(w.portAt, RefNotFound, "%s %s", w.ref, fault)
		return "", missing
	}
	if ref, ok := s.aliasOf(svc); ok {
		if svc = s.target(w, ref); svc == nil {
			return "", missing
		}
		w.ref = ref
		if port, number, fault = portOf(svc, intstr.FromInt(number)); fault != "" {
			s.problem(w.portAt, RefNotFound, "%s %s", w.ref, fault)
			return "", missing
		}
	}
	u := model.NewUpstream()
	u.IP, u.Port, u.Protocol = w.ref.Name+"."+w.ref.Namespace+".svc", number, protocolOf(port.AppProtocol)
	var from *backend
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		// With the final dot, the search domains of Envoy's resolver, such as those of its Pod, do not apply.
		u.IP = strings.TrimSuffix(svc.Spec.ExternalName, ".") + "."
	} else {
		from = &backend{service: w.ref, port: port.Name, number: cmp.Or(port.TargetPort.IntValue(), number)}
	}
	plain := *u
	nameCertificate(&plain, from, "")
	u.Protocol = cmp.Or(w.protocol, u.Protocol)
	s.settle(u, w)
	nameCertificate(u, from, w.subject)
	u.Name = upstreamName(w.ref.Namespace, w.ref.Name, number, variantOf(plain, *u, w))
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
// the Service in a sentence. An ExternalName Service need not list its ports.
func portOf(svc *corev1.Service, wanted intstr.IntOrString) (port corev1.ServicePort, number int, fault string) {
	var have []string
	for _, p := range svc.Spec.Ports {
		if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
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
		return port, 0, "has no TCP port"
	}
	return port, 0, fmt.Sprintf("has no TCP port %s; it has %s", wanted.String(), strings.Join(have, ", "))
}

// protocolOf returns the protocol for the appProtocol of a port: Kubernetes' own names, and those of
// IANA and others that are in use. Any other value is http.
func protocolOf(appProtocol *string) string {
	if appProtocol == nil {
		return "http"
	}
	switch strings.ToLower(*appProtocol) {
	case "kubernetes.io/h2c", "h2c", "http2", "grpc":
		return "h2c"
	case "https", "tls", "kubernetes.io/wss", "wss":
		return "tls"
	case "h2", "grpcs":
		return "h2"
	}
	return "http"
}

// settle applies the settings of a wish to an upstream.
func (s *scope) settle(u *model.Upstream, w wish) {
	b := w.settings
	u.Protocol = cmp.Or(b.Protocol, u.Protocol)
	u.Strategy = cmp.Or(b.Strategy, u.Strategy)
	if t := b.TLS; t != nil {
		u.TLSInsecure = t.Insecure
		u.ValidationSubjectName = t.SubjectName
		if t.CASecret != nil {
			u.ValidationCACertificate, _ = s.secret(w.settingsAt+".tls.caSecret", s.secretRef(*t.CASecret), forAuthorities)
		}
		if t.ClientSecret != nil {
			u.ClientCertificate, _ = s.secret(w.settingsAt+".tls.clientSecret", s.secretRef(*t.ClientSecret), forPair)
		}
	}
	if h := b.HealthCheck; h != nil {
		if h.Path != nil {
			u.HCPath = string(*h.Path)
		}
		u.HCHost = h.Host
		set(&u.HCIntervalSeconds, h.IntervalSeconds)
		set(&u.HCTimeoutSeconds, h.TimeoutSeconds)
		set(&u.HCUnhealthyThresholdCount, h.UnhealthyThreshold)
		set(&u.HCHealthyThresholdCount, h.HealthyThreshold)
	}
	if c := b.Connection; c != nil {
		set(&u.ConnectTimeoutSeconds, c.ConnectTimeoutSeconds)
		set(&u.IdleTimeoutSeconds, c.IdleTimeoutSeconds)
		set(&u.KeepaliveIntervalSeconds, c.KeepaliveIntervalSeconds)
	}
	if l := b.Limits; l != nil {
		set(&u.MaxConnections, l.MaxConnections)
		set(&u.MaxPending, l.MaxPending)
		set(&u.MaxRequests, l.MaxRequests)
		set(&u.MaxRetries, l.MaxRetries)
		set(&u.RetryBudgetPercent, l.RetryBudgetPercent)
		set(&u.RetryBudgetMinCount, l.RetryBudgetMinCount)
	}
	if o := b.Outlier; o != nil {
		set(&u.OutlierThresholdCount, o.Threshold)
		set(&u.OutlierEjectionSeconds, o.EjectionSeconds)
	}
	set(&u.PanicThresholdPercent, b.PanicThresholdPercent)
}

func set(to *int, n *int32) {
	if n != nil {
		*to = int(*n)
	}
}

// secretRef returns the Secret that a reference names.
func (s *scope) secretRef(r gatewayv1.SecretReference) Ref {
	return Ref{KindSecret, cmp.Or(string(r.Namespace), s.of.Namespace), string(r.Name)}
}

// upstreamField returns the field of a wish that a field of the upstream comes from.
func upstreamField(w wish, field string) string {
	path, known := map[string]string{
		"Upstream_name": "", "Upstream_ip": "", "Upstream_weight": ".weight",
		"Upstream_hc_path": ".healthCheck.path", "Upstream_hc_host": ".healthCheck.host",
		"Upstream_hc_intervalseconds": ".healthCheck.intervalSeconds", "Upstream_hc_timeoutseconds": ".healthCheck.timeoutSeconds",
		"Upstream_hc_unhealthythresholdcount": ".healthCheck.unhealthyThreshold", "Upstream_hc_healthythresholdcount": ".healthCheck.healthyThreshold",
		"Upstream_strategy": ".strategy", "Upstream_protocol": ".protocol",
		"Upstream_validation_cacertificate": ".tls.caSecret", "Upstream_validation_subjectname": ".tls.subjectName",
		"Upstream_tls_insecure": ".tls.insecure", "Upstream_client_certificate": ".tls.clientSecret",
		"Upstream_connect_timeoutseconds": ".connection.connectTimeoutSeconds", "Upstream_idle_timeoutseconds": ".connection.idleTimeoutSeconds",
		"Upstream_keepalive_intervalseconds": ".connection.keepaliveIntervalSeconds",
		"Upstream_max_connections":           ".limits.maxConnections", "Upstream_max_pending": ".limits.maxPending",
		"Upstream_max_requests": ".limits.maxRequests", "Upstream_max_retries": ".limits.maxRetries",
		"Upstream_retry_budgetpercent": ".limits.retryBudgetPercent", "Upstream_retry_budgetmincount": ".limits.retryBudgetMinCount",
		"Upstream_outlier_thresholdcount": ".outlier.threshold", "Upstream_outlier_ejectionseconds": ".outlier.ejectionSeconds",
		"Upstream_panic_thresholdpercent": ".panicThresholdPercent",
	}[field]
	switch {
	case field == "Upstream_port":
		return w.portAt
	case !known || path == "":
		return w.at
	}
	return w.settingsAt + path
}
