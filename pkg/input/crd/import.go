package crd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/mapping"
)

// ImportOptions say how to convert objects into a document.
type ImportOptions struct {
	// Proxy is the proxy of objects that name none; empty means gatehouse.
	Proxy string
	// Values reads the contents of Secrets.
	Values bool
}

// importer makes the document from objects.
type importer struct {
	options ImportOptions
	in      *Objects
	// several says that the objects are of more than one namespace; names then begin with it.
	several bool
	objects map[model.Key]model.Object
	links   []model.Key
	// used are the upstreams by what they are made from.
	used map[string]string
	// specs are those of the GatewayHosts by service, without the proxy.
	specs map[string]gatewayv1.GatewayHostSpec
	// inline are the Secrets that hold texts of filters.
	inline map[string]bool
	// keySets are the Secrets that filters name as key sets.
	keySets  map[string]bool
	warnings []string
	// unnamed says that an object names no proxy.
	unnamed bool
	problems
}

// Import converts objects into a document. warnings lists what differs from the cluster. An error
// is an *Error.
func Import(in *Objects, options ImportOptions) (doc *document.Document, warnings []string, err error) {
	options.Proxy = cmp.Or(options.Proxy, "gatehouse")
	i := &importer{
		options: options, in: in, objects: map[model.Key]model.Object{}, used: map[string]string{}, inline: map[string]bool{},
		keySets: map[string]bool{}, specs: map[string]gatewayv1.GatewayHostSpec{},
	}
	i.several = i.hasNamespaces()
	i.settings()
	i.upstreams()
	i.filters()
	i.globalConfigs()
	i.secrets()
	i.hosts()
	i.warnOfProxies()
	if err := i.err(unreadable); err != nil {
		return nil, nil, err
	}
	doc = i.document()
	i.check(doc)
	if err := i.err(unreadable); err != nil {
		return nil, nil, err
	}
	return doc, i.warnings, nil
}

// unreadable is what an *Error of Import begins with.
const unreadable = "these objects cannot be read as a configuration:"

// check refuses what a reader of the document would refuse.
func (i *importer) check(doc *document.Document) {
	var text bytes.Buffer
	if err := document.Encode(&text, doc, true); err != nil {
		i.add("%s", err)
		return
	}
	_, err := document.Parse(text.Bytes(), "")
	switch e, is := errors.AsType[*model.Error](err); {
	case is && len(e.Fields) > 0:
		for _, wrong := range e.Fields {
			_, field, _ := strings.Cut(wrong.Field, ": ") // after its line, which nobody sees
			i.add("%s: %s", field, wrong.Message)
		}
	case err != nil:
		i.add("%s", err)
	}
}

func (i *importer) hasNamespaces() bool {
	seen := map[string]bool{}
	for _, h := range i.in.Hosts {
		seen[namespaceOf(h.ObjectMeta)] = true
	}
	for _, f := range i.in.Filters {
		seen[namespaceOf(f.ObjectMeta)] = true
	}
	for _, g := range i.in.GlobalConfigs {
		seen[namespaceOf(g.ObjectMeta)] = true
	}
	return len(seen) > 1
}

func namespaceOf(m metav1.ObjectMeta) string { return cmp.Or(m.Namespace, metav1.NamespaceDefault) }

// put adds an object, unless the same one was added.
func (i *importer) put(from string, o model.Object) {
	if had := i.objects[o.Key()]; had != nil && !reflect.DeepEqual(had, o) {
		i.add("%s: another object is %s too, and differs", from, o.Key().Path())
	}
	i.objects[o.Key()] = o
}

// warn adds a warning once.
func (i *importer) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(i.warnings, text) {
		i.warnings = append(i.warnings, text)
	}
}

func (i *importer) link(key model.Key) {
	if !slices.Contains(i.links, key) {
		i.links = append(i.links, key)
	}
}

// settings reads the ConfigMap that Export wrote.
func (i *importer) settings() {
	for _, m := range i.in.Settings {
		if m.Annotations[gatewayv1.AnnotationSettings] == "" {
			continue
		}
		for _, entry := range []string{proxiesEntry, secretsEntry} {
			if m.Data[entry] == "" {
				continue
			}
			part, err := document.Parse([]byte(m.Data[entry]), "")
			if err != nil {
				i.add("ConfigMap %s: %s: %s", m.Name, entry, err)
				continue
			}
			for _, item := range part.Items {
				i.put("ConfigMap "+m.Name, item.Object)
			}
		}
	}
}

// secretName returns a function that returns the name of the secret for a reference.
func (i *importer) secretName(namespace string) func(path string, ref gatewayv1.SecretReference) string {
	return func(_ string, ref gatewayv1.SecretReference) string {
		return i.secretOf(cmp.Or(string(ref.Namespace), namespace), string(ref.Name))
	}
}

// secretOf returns the name of the secret for a Secret. If the Secret is not among the objects,
// the secret has no content.
func (i *importer) secretOf(namespace, name string) string {
	own := ""
	if at := slices.IndexFunc(i.in.Secrets,
		func(s *corev1.Secret) bool { return namespaceOf(s.ObjectMeta) == namespace && s.Name == name }); at >= 0 {
		own = nameOf(i.in.Secrets[at].ObjectMeta, i.several)
	}
	for key := range i.objects {
		// The ConfigMap has the secret's own name.
		if own == "" && key.Kind == model.KindSecret && objectName(key.Name()) == name {
			own = key.Name()
		}
	}
	if own == "" {
		own = nameOf(metav1.ObjectMeta{Namespace: namespace, Name: name}, i.several)
		i.warn("Secret %s/%s is not among the objects: the secret %q has no content", namespace, name, own)
	}
	if i.objects[model.SecretKey(own)] == nil {
		i.objects[model.SecretKey(own)] = &model.Secret{Name: own}
	}
	return own
}

// secrets reads the Secrets, except those of other programs.
func (i *importer) secrets() {
	for _, o := range i.in.Secrets {
		if isForPrograms(o.Type) || i.inline[namespaceOf(o.ObjectMeta)+"/"+o.Name] {
			continue
		}
		if i.isKeySet(o) {
			i.keySet(o)
			continue
		}
		s, fault := readSecret(o, nameOf(o.ObjectMeta, i.several), i.options.Values)
		if fault != "" {
			i.warn("Secret %s/%s %s: it is left out", namespaceOf(o.ObjectMeta), o.Name, fault)
			continue
		}
		i.objects[s.Key()] = s
	}
}

// filters reads the RouteFilters.
func (i *importer) filters() {
	for _, o := range i.in.Filters {
		if typeName, isList := strings.CutPrefix(string(o.Spec.Type), model.ListPrefix); isList {
			l := &model.List{Name: nameOf(o.ObjectMeta, i.several), Type: typeName, Tags: model.NewTags(tagsOf(o.ObjectMeta))}
			l.Config = i.config("RouteFilter "+o.Name, o.ObjectMeta, "", o.Spec.RouteFilterConfig.Config)
			i.put("RouteFilter "+o.Name, l)
			continue
		}
		f := &model.Filter{
			Name: nameOf(o.ObjectMeta, i.several), Type: string(o.Spec.Type), Tags: model.NewTags(tagsOf(o.ObjectMeta)),
		}
		f.Config = i.config("RouteFilter "+o.Name, o.ObjectMeta, f.TypeName(), o.Spec.RouteFilterConfig.Config)
		i.put("RouteFilter "+o.Name, f)
	}
}

// globalConfigs reads the GlobalConfigs.
func (i *importer) globalConfigs() {
	for _, o := range i.in.GlobalConfigs {
		g := &model.GlobalConfig{
			Name: nameOf(o.ObjectMeta, i.several), Type: string(o.Spec.Type), Tags: model.NewTags(tagsOf(o.ObjectMeta)),
		}
		g.Config = i.config("GlobalConfig "+o.Name, o.ObjectMeta, g.TypeName(), o.Spec.Config)
		i.put("GlobalConfig "+o.Name, g)
		if o.Spec.Proxy != "" && o.Spec.Proxy != gatewayv1.Unattached {
			i.link(model.ProxyGlobalConfigKey(i.proxy(string(o.Spec.Proxy)), g.Name))
		}
	}
}

// globalConfigOf returns the name of a global config.
func (i *importer) globalConfigOf(namespace, name string) string {
	for _, g := range i.in.GlobalConfigs {
		if namespaceOf(g.ObjectMeta) == namespace && g.Name == name {
			return nameOf(g.ObjectMeta, i.several)
		}
	}
	return nameOf(metav1.ObjectMeta{Namespace: namespace, Name: name}, i.several)
}

// proxy makes a proxy unless it exists, and returns its name.
func (i *importer) proxy(name string) string {
	i.unnamed = i.unnamed || name == ""
	name = cmp.Or(name, i.options.Proxy)
	if i.objects[model.ProxyKey(name)] == nil {
		i.objects[model.ProxyKey(name)] = model.ProxyKey(name).New()
	}
	return name
}

// warnOfProxies warns if some objects name no proxy, and others name a different one than these
// get.
func (i *importer) warnOfProxies() {
	var others []string
	for key := range i.objects {
		if key.Kind == model.KindProxy && key.Name() != i.options.Proxy {
			others = append(others, key.Name())
		}
	}
	if i.unnamed && len(others) > 0 {
		slices.Sort(others)
		i.warn("different proxy names: objects that name none belong to %q (--proxy names another), the others to %s",
			i.options.Proxy, strings.Join(others, ", "))
	}
}

// hosts reads the GatewayHosts.
func (i *importer) hosts() {
	slices.SortFunc(i.in.Hosts, func(a, b *gatewayv1.GatewayHost) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	for _, o := range i.in.Hosts {
		at, namespace, name := "GatewayHost "+o.Name, namespaceOf(o.ObjectMeta), nameOf(o.ObjectMeta, i.several)
		if !i.isSame(name, o.Spec) {
			i.add("%s: another GatewayHost is the service %q too, and differs: "+
				"GatewayHosts with different proxy names may differ in spec.proxy only", at, name)
		}
		s := model.NewService()
		s.Name, s.Tags = name, model.NewTags(tagsOf(o.ObjectMeta))
		mapping.ReadHost(&o.Spec, s, i.secretName(namespace))
		i.certificates(s, namespace, o.Spec.VirtualHost.TLS)
		i.put(at, s)
		if o.Spec.Proxy != gatewayv1.Unattached {
			i.link(model.ProxyServiceKey(i.proxy(string(o.Spec.Proxy)), name))
		}
		for _, f := range o.Spec.Filters {
			i.link(model.ServiceFilterKey(name, i.filterName(at, namespace, string(f.Name))))
		}
		for n, r := range o.Spec.Routes {
			i.route(at, fmt.Sprintf("spec.routes[%d]", n), namespace, name, cmp.Or(r.Name, fmt.Sprintf("route-%d", n)), r)
		}
	}
}

// isSame reports whether all GatewayHosts of a service so far are equal, except for the proxy.
func (i *importer) isSame(service string, spec gatewayv1.GatewayHostSpec) bool {
	spec.Proxy = ""
	first, ok := i.specs[service]
	if !ok {
		i.specs[service] = spec
	}
	return !ok || reflect.DeepEqual(first, spec)
}

// filterName returns the name of the filter for a RouteFilter.
func (i *importer) filterName(at, namespace, name string) string {
	for _, f := range i.in.Filters {
		if namespaceOf(f.ObjectMeta) == namespace && f.Name == name {
			return nameOf(f.ObjectMeta, i.several)
		}
	}
	i.add("%s: the RouteFilter %s/%s is not among the objects", at, namespace, name)
	return name
}

// certificates attaches the secrets with the certificates of a service.
func (i *importer) certificates(s *model.Service, namespace string, t *gatewayv1.TLS) {
	if t == nil {
		return
	}
	refs := t.AdditionalSecrets
	if t.SecretName != "" {
		refs = append([]gatewayv1.SecretReference{{Name: t.SecretName, Namespace: t.SecretNamespace}}, refs...)
	}
	for _, ref := range refs {
		i.link(model.ServiceSecretKey(s.Name, i.secretName(namespace)("", ref)))
	}
}

func (i *importer) route(from, at, namespace, service, name string, r gatewayv1.Route) {
	route := mapping.ReadRoute(&r, at, func(path, format string, args ...any) {
		i.add("%s: %s: %s", from, path, fmt.Sprintf(format, args...))
	})
	route.Service, route.Name = service, name
	if exempt := route.Config.Exempt; exempt != nil {
		for n, filter := range exempt.Service {
			exempt.Service[n] = i.filterName(from+": "+at, namespace, filter)
		}
	}
	i.put(from+": "+at, route.Route)
	for _, f := range r.Filters {
		i.link(model.RouteFilterKey(service, name, i.filterName(from+": "+at, namespace, string(f.Name))))
	}
	for n, b := range r.Services {
		if u := i.upstream(fmt.Sprintf("%s: %s.services[%d]", from, at, n), namespace, b); u != "" {
			i.link(model.RouteUpstreamKey(service, name, u))
		}
	}
}

// document orders the objects and links as GET /config does.
func (i *importer) document() *document.Document {
	doc, items := &document.Document{}, map[model.Key]*document.Item{}
	for _, kind := range model.Kinds() {
		var keys []model.Key
		for key := range i.objects {
			if key.Kind == kind {
				keys = append(keys, key)
			}
		}
		slices.SortFunc(keys, func(a, b model.Key) int { return strings.Compare(a.Text(), b.Text()) })
		for _, key := range keys {
			items[key] = &document.Item{Object: i.objects[key], Lists: map[model.Kind][]document.Link{}}
			doc.Items = append(doc.Items, items[key])
			for _, link := range key.Kind.OwnedKinds() {
				if link.Row().Attaches() != "" {
					items[key].Lists[link] = []document.Link{}
				}
			}
		}
	}
	slices.SortFunc(i.links, func(a, b model.Key) int { return strings.Compare(a.Text(), b.Text()) })
	for _, link := range i.links {
		owner := items[link.Owner()]
		owner.Lists[link.Kind] = append(owner.Lists[link.Kind], document.Link{Name: link.Attached().Name()})
	}
	return doc
}
