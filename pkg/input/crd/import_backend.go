package crd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/mapping"
)

// upstreams reads the Services with connection settings of their own.
func (i *importer) upstreams() {
	for _, s := range i.in.Services {
		text, ok := s.Annotations[gatewayv1.AnnotationUpstream]
		if !ok {
			continue
		}
		at := "Service " + s.Name
		b := gatewayv1.Backend{Name: gatewayv1.ObjectName(s.Name)}
		if err := json.Unmarshal([]byte(text), &b.BackendSettings); err != nil {
			i.add("%s: the annotation %s: %s", at, gatewayv1.AnnotationUpstream, err)
			continue
		}
		if weight := s.Annotations[gatewayv1.AnnotationWeight]; weight != "" {
			n, err := strconv.ParseInt(weight, 10, 32)
			if err != nil {
				i.add("%s: the annotation %s: %q is not a number", at, gatewayv1.AnnotationWeight, weight)
			}
			b.Weight = new(int32)
			*b.Weight = int32(n)
		}
		if len(s.Spec.Ports) != 1 {
			i.add("%s: has %d ports, and the annotation %s does not say which", at, len(s.Spec.Ports),
				gatewayv1.AnnotationUpstream)
			continue
		}
		b.Port = intstr.FromInt32(s.Spec.Ports[0].Port)
		i.upstream(at, namespaceOf(s.ObjectMeta), b)
	}
}

// findService returns a Service of the objects, or nil.
func (i *importer) findService(namespace, name string) *corev1.Service {
	at := slices.IndexFunc(i.in.Services, func(s *corev1.Service) bool {
		return namespaceOf(s.ObjectMeta) == namespace && s.Name == name
	})
	if at < 0 {
		return nil
	}
	return i.in.Services[at]
}

// upstream makes the upstream of a backend and returns its name; empty if there is none.
func (i *importer) upstream(at, namespace string, b gatewayv1.Backend) string {
	namespace = cmp.Or(string(b.Namespace), namespace)
	s := i.findService(namespace, string(b.Name))
	if s == nil {
		i.add("%s: the Service %s/%s is not among the objects", at, namespace, b.Name)
		return ""
	}
	at1 := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return b.Port.Type == intstr.Int && p.Port == b.Port.IntVal || b.Port.Type == intstr.String && p.Name == b.Port.StrVal
	})
	port := corev1.ServicePort{Port: b.Port.IntVal}
	switch {
	case at1 >= 0:
		port = s.Spec.Ports[at1]
	case s.Spec.Type != corev1.ServiceTypeExternalName || b.Port.Type == intstr.String:
		i.add("%s: the Service %s/%s has no port %s", at, namespace, b.Name, b.Port.String())
		return ""
	}
	u := model.NewUpstream()
	u.IP, u.Port = i.address(s, port)
	u.Protocol = mapping.Protocol(port.AppProtocol)
	mapping.ReadBackend(&b, at, u, i.secretName(namespace))
	if u.ValidationSubjectName == u.IP && !u.IsDNSName() {
		u.ValidationSubjectName = "" // its default
	}
	u.Tags = model.NewTags(tagsOf(s.ObjectMeta))
	return i.nameUpstream(s, int(port.Port), u)
}

// nameUpstream names an upstream: the first of a Service gets the name of the Service; others,
// with different settings or another port, get a number as well.
func (i *importer) nameUpstream(s *corev1.Service, port int, u *model.Upstream) string {
	what, err := json.Marshal(u)
	if err != nil {
		i.add("Service %s: %s", s.Name, err)
	}
	id := fmt.Sprintf("%s/%s:%d %s", namespaceOf(s.ObjectMeta), s.Name, port, what)
	if name, ok := i.used[id]; ok {
		return name
	}
	u.Name = nameOf(s.ObjectMeta, i.several)
	for n := 2; i.objects[u.Key()] != nil; n++ {
		u.Name = fmt.Sprintf("%s-%d", nameOf(s.ObjectMeta, i.several), n)
	}
	i.objects[u.Key()], i.used[id] = u, u.Name
	return u.Name
}

// address returns the address of a Service outside the cluster: its ExternalName, or the single
// address of its EndpointSlices. For any other Service it is its name in the cluster.
func (i *importer) address(s *corev1.Service, port corev1.ServicePort) (host string, number int) {
	host, number = s.Name+"."+namespaceOf(s.ObjectMeta)+".svc", int(port.Port)
	var ips []string
	for _, slice := range i.in.Slices {
		if namespaceOf(slice.ObjectMeta) != namespaceOf(s.ObjectMeta) ||
			slice.Labels[discoveryv1.LabelServiceName] != s.Name {
			continue
		}
		for _, e := range slice.Endpoints {
			ips = append(ips, e.Addresses...)
		}
		for _, p := range slice.Ports {
			if p.Port != nil && (p.Name == nil || *p.Name == port.Name) {
				number = int(*p.Port)
			}
		}
	}
	written := s.Annotations[gatewayv1.AnnotationAddress]
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		host, number = s.Spec.ExternalName, int(port.Port)
	case len(s.Spec.Selector) == 0 && len(ips) == 1:
		host = ips[0]
	default:
		i.warn("Service %s/%s has no address outside the cluster: the upstream is %s, which only a gateway in it reaches",
			namespaceOf(s.ObjectMeta), s.Name, host)
		number = int(port.Port)
	}
	if written != "" && sameAddress(written, host) {
		host = written
	}
	return host, number
}

// config returns the configuration of a RouteFilter or GlobalConfig with the names of the REST
// API.
func (i *importer) config(at string, m metav1.ObjectMeta, typeName, text string) model.JSON {
	config := []byte(text)
	if original, ok := originalOf(m, text); ok {
		config = []byte(original)
		switch {
		case typeName == model.FilterOIDC && textAt(config, clientSecret) == model.Redacted:
			if value, ok := i.inlined(m, textAt(json.RawMessage(text), clientSecret+".secret")); ok {
				config = edit(config, clientSecret, func(json.RawMessage) json.RawMessage { return jsonText(value) })
			}
		case typeName == model.FilterBasicAuth:
			config = i.passwords(m, text, config)
		}
	} else {
		config = i.renamed(at, m, typeName, config)
	}
	compact, err := model.CompactJSON(string(config))
	if err != nil {
		i.add("%s: the configuration %s", at, err)
	}
	return compact
}

// inlined returns the text of a filter that its Secret contains; ok is false without such a
// Secret, or without the option Values.
func (i *importer) inlined(m metav1.ObjectMeta, name string) (text string, ok bool) {
	i.inline[namespaceOf(m)+"/"+name] = true
	for _, s := range i.in.Secrets {
		if i.options.Values && namespaceOf(s.ObjectMeta) == namespaceOf(m) && s.Name == name {
			read, _ := readSecret(s, name, true)
			if read != nil && read.Value != "" {
				return read.Value, true
			}
		}
	}
	return "", false
}

// passwords restores the passwords in the configuration of a filter that contained them.
func (i *importer) passwords(m metav1.ObjectMeta, text string, config json.RawMessage) json.RawMessage {
	var named, original model.BasicAuthFilter
	if json.Unmarshal([]byte(text), &named) != nil || json.Unmarshal(config, &original) != nil ||
		len(named.Users) != len(original.Users) {
		return config // which is reported elsewhere
	}
	for n, u := range original.Users {
		if u.Password.Text != model.Redacted {
			continue
		}
		if value, ok := i.inlined(m, named.Users[n].Password.Secret); ok {
			original.Users[n].Password.Text = value
			config = jsonText(original)
		}
	}
	return config
}

// renamed replaces the names of Kubernetes with those of the REST API.
func (i *importer) renamed(at string, m metav1.ObjectMeta, typeName string, config json.RawMessage) json.RawMessage {
	namespaces := map[string]string{}
	if typeName == model.GlobalConfigOAuth {
		namespaces["openid_connect.client_secret"] = textAt(config, "openid_connect.client_secret_namespace")
		namespaces["openid_connect.hmac_secret"] = textAt(config, "openid_connect.hmac_secret_namespace")
	}
	mapped, err := mapNames(typeName, config, func(path, name string, kind model.Kind) string {
		namespace := cmp.Or(namespaces[path], namespaceOf(m))
		switch kind {
		case model.KindSecret:
			return i.secretOf(namespace, name)
		case model.KindKeySet:
			return i.keySetOf(at, namespace, name)
		case model.KindGlobalConfig:
			return i.globalConfigOf(namespace, name)
		case model.KindList:
			return i.filterName(at, namespace, name)
		}
		service, port, _ := strings.Cut(name, ".")
		return i.loginUpstream(at, namespace, service, port)
	})
	if err != nil {
		return config // which is reported elsewhere
	}
	config = mapped
	if name := textAt(config, externalName); typeName == model.GlobalConfigOAuth && name != "" {
		namespace := cmp.Or(textAt(config, externalService+".namespace"), namespaceOf(m))
		s := i.findService(namespace, name)
		if s == nil {
			i.add("%s: the Service %s/%s is not among the objects", at, namespace, name)
			return config
		}
		host, _ := i.address(s, corev1.ServicePort{})
		config = edit(config, externalName, func(json.RawMessage) json.RawMessage { return jsonText(host) })
	}
	return config
}

// loginUpstream returns the upstream of a Service that a login names.
func (i *importer) loginUpstream(at, namespace, service, port string) string {
	s := i.findService(namespace, service)
	if s == nil {
		i.add("%s: the Service %s/%s is not among the objects", at, namespace, service)
		return ""
	}
	b := gatewayv1.Backend{Name: gatewayv1.ObjectName(service), Port: intstr.Parse(port)}
	if port == "" && len(s.Spec.Ports) > 0 {
		b.Port = intstr.FromInt32(s.Spec.Ports[0].Port)
	}
	if err := json.Unmarshal([]byte(cmp.Or(s.Annotations[gatewayv1.AnnotationUpstream], "{}")),
		&b.BackendSettings); err != nil {
		i.add("%s: the annotation %s of Service %s: %s", at, gatewayv1.AnnotationUpstream, service, err)
	}
	if weight, err := strconv.ParseInt(s.Annotations[gatewayv1.AnnotationWeight], 10, 32); err == nil {
		b.Weight = new(int32)
		*b.Weight = int32(weight)
	}
	return i.upstream(at, namespace, b)
}
