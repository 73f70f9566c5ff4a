package crd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/mapping"
)

// ExportOptions say how to convert a document into objects.
type ExportOptions struct {
	// Namespace is the namespace of all objects; empty means default.
	Namespace string
	// Values writes the contents of secrets, which must be in plain text in the document. Without
	// it nothing secret is written, and the user must create the Secrets.
	Values bool
	// Allow is --upstream-allow of the cluster: what its control plane allows as the address of an upstream all the same.
	Allow []egress.Entry
}

// settingsName is the name of the ConfigMap of Objects.Settings.
const settingsName = "gatehouse-settings"

// The entries of this ConfigMap: parts of a configuration document.
const (
	proxiesEntry = "proxies.yaml"
	secretsEntry = "secrets.yaml"
)

// exporter makes the objects of one document.
type exporter struct {
	options ExportOptions
	source  source
	out     Objects
	todo    []string
	problems
	// services and secrets map names in Kubernetes to objects.
	services, secrets map[string]model.Key
	// pairs and authorities are the secrets that are used as such.
	pairs, authorities map[string]bool
	// logins are the upstreams that logins name.
	logins map[string]bool
}

// Export converts a document into objects. The document must be complete: it contains everything
// it names. todo lists what to do before the objects work. An error is an *Error.
func Export(doc *document.Document, options ExportOptions) (objects *Objects, todo []string, err error) {
	if options.Namespace == "" {
		options.Namespace = metav1.NamespaceDefault
	}
	e := &exporter{
		options: options, services: map[string]model.Key{}, secrets: map[string]model.Key{},
		pairs: map[string]bool{}, authorities: map[string]bool{}, logins: map[string]bool{},
	}
	e.source = index(doc, &e.problems)
	e.findUses()
	e.reserveNames()
	e.keySets()
	e.filters()
	e.globalConfigs()
	for _, key := range e.source.keys(model.KindUpstream, "") {
		e.upstream(e.source.objects[key].(*model.Upstream))
	}
	e.hosts()
	e.withoutPlace()
	e.lists()
	e.settings()
	if err := e.err("this configuration cannot be carried to Kubernetes as it is:"); err != nil {
		return nil, nil, err
	}
	return &e.out, e.todo, nil
}

// findUses finds what secrets and upstreams are used for.
func (e *exporter) findUses() {
	for key, o := range e.source.objects {
		switch o := o.(type) {
		case *model.Service:
			e.authorities[o.ClientCACertificate] = true
			for _, name := range e.source.attached[key][model.KindServiceSecret] {
				e.pairs[name] = true
			}
		case *model.Upstream:
			e.authorities[o.ValidationCACertificate] = true
			e.pairs[o.ClientCertificate] = true
		case *model.Filter, *model.GlobalConfig:
			for _, named := range o.(model.Namer).Names() {
				if named.Kind == model.KindUpstream {
					e.logins[named.Name()] = true
				}
			}
		}
	}
}

// reserveNames assigns a name in Kubernetes to each upstream and secret.
func (e *exporter) reserveNames() {
	for _, key := range e.source.keys(model.KindUpstream, "") {
		e.reserve(e.services, serviceName(key.Name()), key)
	}
	for _, key := range slices.Concat(e.source.keys(model.KindSecret, ""), e.source.keys(model.KindKeySet, "")) {
		e.reserve(e.secrets, objectName(key.Name()), key)
	}
}

func (e *exporter) reserve(taken map[string]model.Key, name string, key model.Key) {
	if other, is := taken[name]; is {
		e.add("%s and %s would both be called %s in Kubernetes: rename one of them", other.Path(), key.Path(), name)
	}
	taken[name] = key
}

// secretRef names the Secret of a secret.
func secretRef(name string) *gatewayv1.SecretReference {
	return &gatewayv1.SecretReference{Name: gatewayv1.ObjectName(objectName(name))}
}

// upstream makes the Service of an upstream.
func (e *exporter) upstream(u *model.Upstream) {
	name := serviceName(u.Name)
	m := e.meta(name, u.Name, u.Tags)
	if !e.isRouted(u.Name) || e.logins[u.Name] {
		var b gatewayv1.Backend
		writeBackend(u, &b)
		text, err := json.Marshal(b.BackendSettings)
		if err != nil {
			e.add("%s: %s", u.Key().Path(), err)
		}
		annotate(&m, gatewayv1.AnnotationUpstream, string(text))
		if b.Weight != nil {
			annotate(&m, gatewayv1.AnnotationWeight, strconv.Itoa(u.Weight))
		}
	}
	if fault := e.service(m, u.IP, u.Port); fault != "" {
		e.add("%s: upstream_ip %s", u.Key().Path(), fault)
	}
}

// isRouted reports whether a route sends requests to the upstream.
func (e *exporter) isRouted(upstream string) bool {
	for _, attached := range e.source.attached {
		if slices.Contains(attached[model.KindRouteUpstream], upstream) {
			return true
		}
	}
	return false
}

// hosts makes a GatewayHost for each service and proxy.
func (e *exporter) hosts() {
	for _, key := range e.source.keys(model.KindService, "") {
		service := e.source.objects[key].(*model.Service)
		spec := gatewayv1.GatewayHostSpec{Filters: e.filterRefs(key, model.KindServiceFilter)}
		mapping.WriteHost(service, &spec, secretRef)
		e.certificates(service, &spec.VirtualHost)
		if n := len(spec.Filters); n > 32 {
			e.add("%s has %d filters; a GatewayHost has at most 32", key.Path(), n)
		}
		for _, route := range e.source.keys(model.KindRoute, service.Name) {
			spec.Routes = append(spec.Routes, e.route(e.source.objects[route].(*model.Route)))
		}
		if n := len(spec.Routes); n > 1000 {
			e.add("%s has %d routes; a GatewayHost has at most 1000: move some to a service with another fqdn", key.Path(), n)
		}
		e.eachProxy(key, service.Tags, func(m metav1.ObjectMeta, proxy string) {
			host := &gatewayv1.GatewayHost{TypeMeta: typeMeta(gatewayv1.KindGatewayHost), ObjectMeta: m, Spec: spec}
			if host.Spec.Proxy = gatewayv1.ProxyName(proxy); proxy == "" {
				host.Spec.Proxy = gatewayv1.Unattached
			}
			e.out.Hosts = append(e.out.Hosts, host)
		})
	}
}

// eachProxy calls add for each proxy that an object is attached to, or once if there is none,
// with the metadata for that Kubernetes object.
func (e *exporter) eachProxy(key model.Key, tags []string, add func(m metav1.ObjectMeta, proxy string)) {
	proxies := e.source.proxies[key]
	if len(proxies) == 0 {
		proxies = []string{""}
	}
	for _, proxy := range proxies {
		if proxy == gatewayv1.Unattached {
			e.add("/proxy/%s has a name that means no proxy in Kubernetes: rename it", proxy)
		}
		name := objectName(key.Name())
		if len(proxies) > 1 {
			name = nameFor(key.Name(), proxy)
		}
		add(e.meta(name, key.Name(), tags), proxy)
	}
}

// nameFor is the name of an object for one of several proxies.
func nameFor(name, proxy string) string { return objectName(name + "." + proxy) }

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion().String(), Kind: kind}
}

// certificates sets the Secrets with the certificates of a service.
func (e *exporter) certificates(s *model.Service, vh *gatewayv1.VirtualHost) {
	secrets := e.source.attached[s.Key()][model.KindServiceSecret]
	if n := len(secrets); n > 33 {
		e.add("%s has %d secrets; a GatewayHost has at most 33", s.Key().Path(), n)
	}
	if vh.TLS == nil && len(secrets) > 0 {
		vh.TLS = &gatewayv1.TLS{}
	}
	t := vh.TLS
	for i, name := range secrets {
		if ref := secretRef(name); i == 0 {
			t.SecretName = ref.Name
		} else {
			t.AdditionalSecrets = append(t.AdditionalSecrets, *ref)
		}
	}
	if t != nil { // the API server would otherwise refuse the object
		t.External = len(secrets) == 0 && (t.HTTPS != "" || t.ClientCASecret != nil)
	}
}

// withoutPlace refuses what Kubernetes has no place for: a RouteFilter belongs to a namespace, and a proxy to none.
func (e *exporter) withoutPlace() {
	for _, key := range e.source.keys(model.KindConsumer, "") {
		e.add("%s: delete it, since no object of Kubernetes is a consumer", key.Path())
	}
	for _, key := range e.source.keys(model.KindProxy, "") {
		for _, name := range e.source.attached[key][model.KindProxyFilter] {
			e.add("%s has the filter %q: attach it to services, or leave it out and write a GlobalConfig of its type", key.Path(), name)
		}
	}
	for key, obj := range e.source.objects {
		if r, ok := obj.(*model.Route); ok && r.Config.Exempt != nil && len(r.Config.Exempt.Proxy) > 0 {
			e.add("%s has exempt.proxy in its Route_config: leave it out, and write it as exempt of a GlobalConfig", key.Path())
		}
	}
	for _, key := range e.source.keys(model.KindService, "") {
		s := e.source.objects[key].(*model.Service)
		if s.IsAutomatic() {
			e.add("%s has Certificate=%s: empty the field and name a Secret that cert-manager fills, which orders certificates in "+
				"Kubernetes", key.Path(), s.Certificate)
		}
		if len(s.ExemptFilters) > 0 {
			e.add("%s has Exempt_filters: empty the field, and write it as exempt of a GlobalConfig", key.Path())
		}
	}
}

// lists makes the RouteFilters of lists.
func (e *exporter) lists() {
	for _, key := range e.source.keys(model.KindList, "") {
		l := e.source.objects[key].(*model.List)
		if e.source.objects[model.FilterKey(l.Name)] != nil {
			e.add("%s and %s would both be a RouteFilter of this name in Kubernetes: rename one of them", key.Path(), model.FilterKey(l.Name).Path())
		}
		e.routeFilter(key, e.meta(objectName(l.Name), l.Name, l.Tags), model.ListPrefix+l.Type, rawJSON(l.Config))
	}
}

func (e *exporter) filterRefs(owner model.Key, kind model.Kind) (refs []gatewayv1.FilterReference) {
	for _, name := range e.source.attached[owner][kind] {
		refs = append(refs, gatewayv1.FilterReference{Name: gatewayv1.ObjectName(objectName(name))})
	}
	return refs
}

// route makes a route with its attachments.
func (e *exporter) route(r *model.Route) gatewayv1.Route {
	out := mapping.WriteRoute(r)
	out.Filters = e.filterRefs(r.Key(), model.KindRouteFilter)
	if out.Exempt != nil {
		for i, name := range r.Config.Exempt.Service {
			if e.source.objects[model.FilterKey(name)] == nil {
				e.add("%s is exempt from the filter %q, which the document does not have", r.Key().Path(), name)
			}
			if slices.Contains(r.Config.Exempt.Service[:i], name) {
				e.add("%s is exempt from the filter %s twice; write it once", r.Key().Path(), name)
			}
			out.Exempt.Host[i] = gatewayv1.ObjectName(objectName(name))
		}
	}
	for _, name := range e.source.attached[r.Key()][model.KindRouteUpstream] {
		u := e.source.objects[model.UpstreamKey(name)].(*model.Upstream)
		b := gatewayv1.Backend{Name: gatewayv1.ObjectName(serviceName(u.Name)), Port: intstr.FromInt(u.Port)}
		writeBackend(u, &b)
		out.Services = append(out.Services, b)
	}
	if fault := checkRoute(out); fault != "" {
		e.add("%s %s", r.Key().Path(), fault)
	}
	return out
}

// settings makes the ConfigMap with the proxies and the Secrets to create, and the Secrets
// themselves if their values are exported.
func (e *exporter) settings() {
	parts := map[string]string{}
	if proxies := e.part(e.source.keys(model.KindProxy, "")); proxies != nil {
		parts[proxiesEntry] = e.encode(proxies)
	}
	keys := e.source.keys(model.KindSecret, "")
	if e.options.Values {
		for _, key := range keys {
			e.out.Secrets = append(e.out.Secrets, e.secret(e.source.objects[key].(*model.Secret)))
		}
	} else if secrets := e.part(keys); secrets != nil {
		for _, item := range secrets.Items {
			s := *item.Object.(*model.Secret)
			s.Cert, s.PrivateKey, s.Value = "", "", ""
			item.Object = &s
			e.todo = append(e.todo, e.howToMake(s.Name))
		}
		parts[secretsEntry] = e.encode(secrets)
	}
	if len(parts) == 0 {
		return
	}
	m := metav1.ObjectMeta{Name: settingsName, Namespace: e.options.Namespace}
	annotate(&m, gatewayv1.AnnotationSettings, "true")
	e.out.Settings = append(e.out.Settings,
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: m, Data: parts})
}

// part returns a document with these objects alone; nil if there are none.
func (e *exporter) part(keys []model.Key) *document.Document {
	if len(keys) == 0 {
		return nil
	}
	doc := &document.Document{}
	for _, key := range keys {
		doc.Items = append(doc.Items, &document.Item{Object: e.source.objects[key]})
	}
	return doc
}

func (e *exporter) encode(doc *document.Document) string {
	var out bytes.Buffer
	if err := document.Encode(&out, doc, false); err != nil {
		e.add("%s", err)
	}
	return out.String()
}

// howToMake says how to create the Secret of a secret.
func (e *exporter) howToMake(name string) string {
	begin, in := "kubectl create secret ", fmt.Sprintf(" --namespace %s", e.options.Namespace)
	switch {
	case e.pairs[name]:
		return begin + "tls " + objectName(name) + in + " --cert=FILE --key=FILE"
	case e.authorities[name]:
		return begin + "generic " + objectName(name) + in + " --from-file=ca.crt=FILE"
	}
	return begin + "generic " + objectName(name) + in + " --from-file=value=FILE"
}
