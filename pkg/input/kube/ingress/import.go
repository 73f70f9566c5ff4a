package ingress

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
)

// Options say which Ingresses are translated.
type Options struct {
	// Class is the class of the Ingresses that are translated; empty means all.
	Class string
	// Proxy is the proxy of the hosts; empty means the first one of the installation.
	Proxy string
}

// Note says what an object lacks of its Ingress.
type Note struct {
	// Line is that of the Ingress or annotation in the input.
	Line int
	// Ingress is its NAMESPACE/NAME.
	Ingress string
	// Message is a sentence without a full stop.
	Message string
	// Closed says that routes answer 503 until this is solved, Needless that nothing changes without it.
	Closed, Needless bool
}

func (n Note) String() string {
	text := fmt.Sprintf("line %d: Ingress %s: %s", n.Line, n.Ingress, n.Message)
	if n.Closed {
		text += "; its routes are closed (503)"
	}
	return text
}

// Result is what the Ingresses became.
type Result struct {
	// Hosts, Filters and Certificates are sorted by namespace and name.
	Hosts        []*gatewayv1.GatewayHost
	Filters      []*gatewayv1.RouteFilter
	Certificates []*Certificate
	// Notes are sorted by line.
	Notes []Note
	// Skipped are the kinds of objects that are no Ingresses.
	Skipped []string
}

// Import translates Ingresses, in YAML or JSON.
func Import(in io.Reader, o Options) (*Result, error) {
	sources, skipped, err := read(in)
	if err != nil {
		return nil, err
	}
	t := &translation{options: o, hosts: map[hostKey]*host{}, filters: map[string]*gatewayv1.RouteFilter{}, certificates: map[string]*Certificate{}}
	var canaries []*reading
	for _, s := range sources {
		if o.Class != "" && classOf(&s.Ingress) != o.Class {
			continue
		}
		r := t.reading(s)
		if value, _ := r.value("canary"); value == "true" {
			canaries = append(canaries, r)
			continue
		}
		t.add(r)
	}
	for _, r := range canaries { // after the Ingresses that they belong to
		t.canary(r)
	}
	return t.result(skipped), nil
}

func classOf(o *networkingv1.Ingress) string {
	if o.Spec.IngressClassName != nil {
		return *o.Spec.IngressClassName
	}
	return o.Annotations["kubernetes.io/ingress.class"]
}

// hostKey is a host name in a namespace.
type hostKey struct{ namespace, fqdn string }

// host is a GatewayHost while it is made.
type host struct {
	*gatewayv1.GatewayHost
	// paths are those of the routes: the first Ingress with a path has it.
	paths map[string]*gatewayv1.Route
	// regex says that nginx matches all paths of the host as regular expressions.
	regex bool
	// ways are the settings of each route, for canaries.
	ways []*way
}

// way is a path of an Ingress.
type way struct {
	host  *host
	of    *reading
	path  networkingv1.HTTPIngressPath
	route *gatewayv1.Route
}

type translation struct {
	options      Options
	hosts        map[hostKey]*host
	filters      map[string]*gatewayv1.RouteFilter
	certificates map[string]*Certificate
	notes        []Note
}

// add makes the hosts and routes of an Ingress.
func (t *translation) add(r *reading) {
	s := r.settings()
	for _, rule := range rulesOf(&r.Ingress) {
		for _, name := range append([]string{rule.Host}, s.aliases...) {
			if rule.Host == "" && name != "" {
				r.note("", "server-alias is for hosts only, and a rule has none")
				continue
			}
			h := t.host(r, cmp.Or(name, "*"))
			if h == nil {
				continue
			}
			t.secure(r, s, h)
			for _, p := range rule.HTTP.Paths {
				t.path(r, s, h, p)
			}
			if s.appRoot != "" {
				t.appRoot(r, s, h)
			}
			if s.www && name == rule.Host && !strings.HasPrefix(h.Spec.VirtualHost.FQDN, "*") {
				t.www(r, s, h)
			}
		}
	}
	r.rest()
}

// rulesOf lists the rules of an Ingress with paths. The default backend is one for every host and path.
func rulesOf(o *networkingv1.Ingress) (rules []networkingv1.IngressRule) {
	for _, rule := range o.Spec.Rules {
		if rule.HTTP != nil {
			rules = append(rules, rule)
		}
	}
	if b := o.Spec.DefaultBackend; b != nil {
		prefix := networkingv1.PathTypePrefix
		rules = append(rules, networkingv1.IngressRule{IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: *b}},
		}}})
	}
	return rules
}

// host returns the host of a name; nil, with a note, if another namespace has it.
func (t *translation) host(r *reading, fqdn string) *host {
	fqdn = strings.ToLower(fqdn)
	for _, key := range slices.SortedFunc(maps.Keys(t.hosts), func(a, b hostKey) int { return cmp.Compare(a.namespace, b.namespace) }) {
		if key.fqdn == fqdn && key.namespace != r.Namespace {
			r.note("", "the host %s is left out: a GatewayHost has one owner, and namespace %s has it already; put these paths into that one, with a ReferenceGrant for their Services", fqdn, key.namespace)
			return nil
		}
	}
	key := hostKey{r.Namespace, fqdn}
	if h := t.hosts[key]; h != nil {
		return h
	}
	h := &host{GatewayHost: &gatewayv1.GatewayHost{}, paths: map[string]*gatewayv1.Route{}}
	h.APIVersion, h.Kind = gatewayv1.GroupVersion().String(), gatewayv1.KindGatewayHost
	h.Namespace, h.Name = r.Namespace, nameOf(fqdn)
	h.Spec.Proxy, h.Spec.VirtualHost.FQDN = gatewayv1.ProxyName(t.options.Proxy), fqdn
	t.hosts[key] = h
	return h
}

// nameOf returns the name of the object for a host.
func nameOf(fqdn string) string {
	if fqdn == "*" {
		return "any-host"
	}
	return strings.ReplaceAll(strings.Replace(fqdn, "*", "any-host-of", 1), "_", "-")
}

// secure sets the certificate of a host, and what plain HTTP gets.
func (t *translation) secure(r *reading, s *settings, h *host) {
	v := &h.Spec.VirtualHost
	listed, secret := tlsOf(&r.Ingress, v.FQDN)
	if listed && secret == "" {
		r.note("", "the host %s has no Secret: nginx serves its default certificate, and Gatehouse needs one to be named", v.FQDN)
	}
	if secret != "" || s.forceRedirect || s.clientCA != "" {
		if v.TLS == nil {
			v.TLS = &gatewayv1.TLS{}
		}
		switch {
		case secret == "" || string(v.TLS.SecretName) == secret:
		case v.TLS.SecretName == "":
			v.TLS.SecretName = gatewayv1.ObjectName(secret)
		default:
			r.note("", "the host %s has the Secret %s already; %s is left out", v.FQDN, v.TLS.SecretName, secret)
		}
		v.TLS.External = v.TLS.SecretName == ""
	}
	if v.TLS == nil {
		return
	}
	if secret != "" && !s.noRedirect || s.forceRedirect {
		v.TLS.HTTPS = "redirect"
	}
	if s.clientCA != "" {
		v.TLS.ClientCASecret = &gatewayv1.SecretReference{Name: gatewayv1.ObjectName(s.clientCA)}
	}
}

// tlsOf returns the Secret with the certificate of a host.
func tlsOf(o *networkingv1.Ingress, fqdn string) (listed bool, secret string) {
	for _, t := range o.Spec.TLS {
		for _, name := range t.Hosts {
			suffix, wild := strings.CutPrefix(name, "*")
			if first, _, _ := strings.Cut(fqdn, "."); name == fqdn || wild && first != "" && fqdn == first+suffix {
				return true, t.SecretName
			}
		}
	}
	return false, ""
}

// path makes the route of a path.
func (t *translation) path(r *reading, s *settings, h *host, p networkingv1.HTTPIngressPath) {
	p.Path = cmp.Or(p.Path, "/")
	kind := networkingv1.PathTypeImplementationSpecific
	if p.PathType != nil {
		kind = *p.PathType
	}
	id := string(kind) + " " + p.Path
	if h.paths[id] != nil {
		r.note("", "the path %s of host %s is left out: an older Ingress has it", p.Path, h.Spec.VirtualHost.FQDN)
		return
	}
	route := &gatewayv1.Route{Timeouts: s.timeouts, Filters: filterNames(s.filters)}
	w := &way{host: h, of: r, path: p, route: route}
	h.paths[id], h.ways, h.regex = route, append(h.ways, w), h.regex || s.isRegex()
	closed := s.closed
	if s.isRegex() && !isRE2(p.Path) {
		r.note("", "the path %s is no RE2 expression (nginx has PCRE): write the route by hand", p.Path)
		closed = true
	}
	backend, ok := t.backend(r, s, &p.Backend)
	if s.answers {
		ok = false // a filter answers
	}
	if ok && !closed {
		route.Services = []gatewayv1.Backend{backend}
		route.Rewrite = s.rewriteOf(p.Path)
	}
	if closed { // without a Service it answers 503
		route.Filters = nil
	}
}

// backend returns the Service of a path.
func (t *translation) backend(r *reading, s *settings, b *networkingv1.IngressBackend) (gatewayv1.Backend, bool) {
	if b.Service == nil {
		if !s.answers {
			r.note("", "a backend that is no Service has no equivalent; its route answers 503")
		}
		return gatewayv1.Backend{}, false
	}
	out := gatewayv1.Backend{Name: gatewayv1.ObjectName(b.Service.Name), BackendSettings: s.backend}
	if out.Port = intstr.FromInt32(b.Service.Port.Number); b.Service.Port.Name != "" {
		out.Port = intstr.FromString(b.Service.Port.Name)
	}
	return out, true
}

// conditions sets the conditions of a host's routes, when it is known whether nginx reads paths as regular expressions.
func (h *host) conditions() {
	for _, w := range h.ways {
		path, kind := w.path.Path, networkingv1.PathTypeImplementationSpecific
		if w.path.PathType != nil {
			kind = *w.path.PathType
		}
		plain := gatewayv1.URLPath(path)
		c := gatewayv1.Condition{}
		switch {
		case h.regex && isRE2(path): // location ~* "^PATH", the longest first
			pattern := regexOf(path)
			c.Regex, w.route.Priority = &pattern, int32(min(len(path), 4096)) // #nosec G115 -- it is small
		case kind == networkingv1.PathTypeExact:
			c.Exact = &plain
		case kind == networkingv1.PathTypePrefix && path != "/":
			trimmed := gatewayv1.URLPath(strings.TrimRight(path, "/"))
			c.Segment = &trimmed
		default:
			c.Prefix = &plain
		}
		w.route.Conditions = append([]gatewayv1.Condition{c}, w.route.Conditions...)
	}
}

// appRoot makes the route that redirects / of a host.
func (t *translation) appRoot(r *reading, s *settings, h *host) {
	root, id := gatewayv1.URLPath("/"), "app-root"
	if h.paths[id] != nil {
		return
	}
	name := r.filter("root", "route_filter_redirect", map[string]any{"path": s.appRoot, "code": 302})
	route := &gatewayv1.Route{
		Name: "app-root", Conditions: []gatewayv1.Condition{{Exact: &root}}, Priority: 5000, Filters: filterNames([]string{name}),
	}
	h.paths[id] = route
}

// www makes the host that redirects to another one: www.HOST to HOST, or the other way around.
func (t *translation) www(r *reading, s *settings, to *host) {
	fqdn := "www." + to.Spec.VirtualHost.FQDN
	if bare, is := strings.CutPrefix(to.Spec.VirtualHost.FQDN, "www."); is {
		fqdn = bare
	}
	h := t.host(r, fqdn)
	if h == nil || len(h.paths) > 0 {
		return
	}
	t.secure(r, s, h)
	root := gatewayv1.URLPath("/")
	name := r.filter("to-"+to.Spec.VirtualHost.FQDN, "route_filter_redirect", map[string]any{"host": to.Spec.VirtualHost.FQDN, "code": 308})
	h.paths["www"] = &gatewayv1.Route{Conditions: []gatewayv1.Condition{{Prefix: &root}}, Filters: filterNames([]string{name})}
}

func filterNames(names []string) (list []gatewayv1.FilterReference) {
	for _, n := range names {
		list = append(list, gatewayv1.FilterReference{Name: gatewayv1.ObjectName(n)})
	}
	return list
}

func (t *translation) result(skipped []string) *Result {
	r := &Result{Notes: t.notes, Skipped: skipped}
	byName := func(a, b metav1.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	}
	for _, h := range t.hosts {
		h.conditions()
		for _, w := range h.ways {
			h.Spec.Routes = append(h.Spec.Routes, *w.route)
		}
		for _, id := range []string{"app-root", "www"} {
			if route := h.paths[id]; route != nil {
				h.Spec.Routes = append(h.Spec.Routes, *route)
			}
		}
		r.Hosts = append(r.Hosts, h.GatewayHost)
	}
	r.Filters = slices.Collect(maps.Values(t.filters))
	r.Certificates = slices.Collect(maps.Values(t.certificates))
	slices.SortFunc(r.Hosts, func(a, b *gatewayv1.GatewayHost) int { return byName(a, b) })
	slices.SortFunc(r.Filters, func(a, b *gatewayv1.RouteFilter) int { return byName(a, b) })
	slices.SortFunc(r.Certificates, func(a, b *Certificate) int { return byName(a, b) })
	slices.SortStableFunc(r.Notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
	return r
}
