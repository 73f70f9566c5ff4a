package logintest

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Subject is the login of a service on a proxy. Use Find.
type Subject struct {
	service, proxy string
	// config has the service, the proxy, and the objects that decide about the login.
	config *model.Config
	// key is the key of the filter or global config with the login.
	key   model.Key
	login *model.Login
	// target is where users reach the service.
	target *url.URL
}

// Find reads the login of a service. proxy may be empty if the service has only one,
// and target if it is https://FQDN with the port of the proxy.
func Find(r store.Reader, service, proxy, target string) (*Subject, error) {
	svc, err := store.Get[*model.Service](r, model.ServiceKey(service))
	if err != nil {
		return nil, err
	}
	s := &Subject{service: service, config: model.NewConfig()}
	if s.proxy, err = proxyOf(r, service, proxy); err != nil {
		return nil, err
	}
	objects, err := read(r, svc, s.proxy)
	if err != nil {
		return nil, err
	}
	change := model.Change{Full: true, Revision: 1}
	for _, kind := range model.Kinds() {
		for _, obj := range objects {
			if obj.Key().Kind == kind {
				change.Entries = append(change.Entries, model.Entry{Key: obj.Key(), Object: obj})
			}
		}
	}
	s.config.Apply(change)
	if err := s.findLogin(); err != nil {
		return nil, err
	}
	s.target, err = targetOf(svc, s.config.Proxy(s.proxy).Proxy, target)
	return s, err
}

// proxyOf returns the proxy to test on.
func proxyOf(r store.Reader, service, named string) (string, error) {
	links, err := store.List[*model.ProxyService](r,
		store.Query{Kind: model.KindProxyService, To: []model.Key{model.ServiceKey(service)}})
	if err != nil {
		return "", err
	}
	var on []string
	for _, l := range links {
		on = append(on, l.Proxy)
	}
	switch {
	case named != "" && slices.Contains(on, named), named == "" && len(on) == 1:
		return cmp.Or(named, strings.Join(on, "")), nil
	case named != "":
		return "", model.NotFoundError(model.ProxyServiceKey(named, service))
	case len(on) == 0:
		return "", &model.Error{
			Kind: model.Conflict, Path: model.ServiceKey(service).Path(),
			Message: fmt.Sprintf("service %q is on no proxy, so that no request reaches it", service),
			Hint:    "attach it, with gatehouse attach service/" + service + " proxy/NAME",
		}
	}
	return "", invalid("proxy", "service %q is on the proxies %s: name one", service, strings.Join(on, ", "))
}

func invalid(field, format string, args ...any) error {
	return &model.Error{
		Kind: model.Invalid, Message: "1 field is missing or wrong", Hint: "see errors",
		Fields: []model.FieldError{{Field: field, Message: fmt.Sprintf(format, args...)}},
	}
}

// reading collects objects, each once.
type reading struct {
	store.Reader
	has  map[model.Key]bool
	list []model.Object
}

// read returns a service and a proxy with the objects that decide about the login.
func read(r store.Reader, svc *model.Service, proxy string) ([]model.Object, error) {
	g := &reading{Reader: r, has: map[model.Key]bool{}}
	g.add(svc)
	if err := g.get(model.ProxyKey(proxy)); err != nil {
		return nil, err
	}
	if err := g.get(model.ProxyServiceKey(proxy, svc.Name)); err != nil {
		return nil, err
	}
	for _, q := range []store.Query{
		{Kind: model.KindServiceFilter, To: []model.Key{svc.Key()}},
		{Kind: model.KindServiceSecret, To: []model.Key{svc.Key()}},
		{Kind: model.KindGlobalConfig}, {Kind: model.KindProxyGlobalConfig},
	} {
		list, err := r.List(q)
		if err != nil {
			return nil, err
		}
		for _, obj := range list {
			if err := g.follow(obj); err != nil {
				return nil, err
			}
		}
	}
	return g.list, nil
}

// follow adds an object with the objects that it attaches, those that these name, and
// those that those name; of global configs, only logins.
func (g *reading) follow(obj model.Object) error {
	if c, ok := obj.(*model.GlobalConfig); ok && c.TypeName() != model.GlobalConfigOAuth {
		return nil
	}
	if l, ok := obj.(*model.ProxyGlobalConfig); ok {
		if g.has[model.GlobalConfigKey(l.GlobalConfig)] {
			g.add(l)
			return g.get(model.ProxyKey(l.Proxy))
		}
		return nil
	}
	g.add(obj)
	if attached := obj.Key().Attached(); attached != (model.Key{}) {
		return g.get(attached)
	}
	return g.names(obj)
}

func (g *reading) add(obj model.Object) {
	if !g.has[obj.Key()] {
		g.has[obj.Key()] = true
		g.list = append(g.list, obj)
	}
}

func (g *reading) get(key model.Key) error {
	if g.has[key] {
		return nil
	}
	obj, err := g.Get(key)
	if err != nil {
		return err
	}
	g.add(obj)
	return g.names(obj)
}

func (g *reading) names(obj model.Object) error {
	n, ok := obj.(model.Namer)
	if !ok {
		return nil
	}
	for _, key := range n.Names() {
		if err := g.get(key); err != nil && !model.IsKind(err, model.NotFound) {
			return err
		}
	}
	return nil
}

// findLogin finds the object with the login: the service's own filter, otherwise a
// global config of the proxy.
func (s *Subject) findLogin() error {
	s.key, s.login = model.Key{}, nil
	t := s.config.Service(s.service)
	for _, f := range t.Filters {
		if f.Type == model.FilterOIDC && s.login == nil {
			s.key, s.login = f.Key(), model.LoginOf(f.Spec)
		}
	}
	for _, g := range s.config.Proxy(s.proxy).GlobalConfigs {
		if g.Type == model.GlobalConfigOAuth && s.key == (model.Key{}) && credential.TakesGlobalLogin(t) {
			s.key, s.login = g.Key(), model.LoginOf(g.Spec)
		}
	}
	if s.login != nil {
		return nil
	}
	e := &model.Error{
		Kind: model.Conflict, Path: t.Service.Key().Path(), Message: fmt.Sprintf("service %q requires no login", s.service),
		Hint: "attach a filter of type http_filter_oidc to it, with gatehouse attach filter/NAME service/" + s.service,
	}
	if s.key != (model.Key{}) {
		e.Message, e.Hint = fmt.Sprintf("the configuration of %s cannot be read", s.key.Path()), "write it again"
	}
	return e
}

// learn adds the provider's answer to the login.
func (s *Subject) learn(p model.Provider) error {
	s.config.Apply(model.Change{Revision: 2, Learned: map[model.Key]model.Providers{s.key: {&p}}})
	return s.findLogin()
}

// compiled returns the login as Envoy receives it, or why it cannot be enforced.
func (s *Subject) compiled(settings compile.Settings) (*credential.Login, error) {
	t := s.config.Service(s.service)
	if c := compile.ClosedHost(t); c != nil {
		return nil, fmt.Errorf("%s", c.Message)
	}
	bare := *t
	bare.Routes = nil
	h, condition := compile.Host(&bare, nil, settings, nil)
	if condition != nil {
		return nil, fmt.Errorf("%s", condition.Message)
	}
	if s.key.Kind == model.KindFilter {
		return credential.LoginOf(h), nil
	}
	p := s.config.Proxy(s.proxy)
	global, err := credential.GlobalLogin(p.GlobalConfigs, compile.Places(p.Named, settings))
	if err != nil {
		return nil, err
	}
	with, err := credential.WithLogin(h, global)
	if err != nil {
		return nil, err
	}
	return credential.LoginOf(with), nil
}

// targetOf returns the URL where users reach a service.
func targetOf(svc *model.Service, p *model.Proxy, given string) (*url.URL, error) {
	if given == "" {
		if strings.Contains(svc.FQDN, "*") {
			return nil, invalid("url", "the fqdn %q is for many hosts: give the URL of one, such as https://shop.example.com/",
				svc.FQDN)
		}
		given = "https://" + svc.FQDN
		if p.HTTPSPort != 443 {
			given += ":" + strconv.Itoa(p.HTTPSPort)
		}
		given += "/"
	}
	u, err := url.Parse(given)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "":
		return nil, invalid("url", "%q is not a URL such as https://%s/: a login needs https, because its cookies are Secure",
			given, svc.FQDN)
	case !serves(compile.Domain(svc), strings.ToLower(u.Hostname())):
		return nil, invalid("url", "its host %s is not that of service %q, whose fqdn is %s", u.Hostname(), svc.Name,
			svc.FQDN)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

func serves(domain, host string) bool {
	return domain == "*" || strings.Trim(domain, "[]") == host ||
		strings.HasPrefix(domain, "*.") && strings.HasSuffix(host, domain[1:])
}
