package precheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// loginWarnings warns of written logins that do not work as intended, alone or on the services
// that have them.
func (rules Rules) loginWarnings(r store.Reader, written store.Changes) ([]string, error) {
	w := &loginWarner{rules: rules, reader: r, logins: map[model.Key]*model.Login{}, services: map[model.Key]bool{}}
	for c, err := range written(model.KindSecret, model.KindFilter, model.KindGlobalConfig, model.KindProxy,
		model.KindProxyGlobalConfig, model.KindProxyService,
		model.KindService, model.KindServiceFilter, model.KindServiceSecret, model.KindRoute) {
		if err == nil {
			err = w.gather(c)
		}
		if err != nil || len(w.services) > maxAttachments || len(w.logins) > maxAttachments {
			return nil, err
		}
	}
	for _, key := range sortedKeys(w.logins) {
		if err := w.adviseLogin(key, w.logins[key]); err != nil {
			return nil, err
		}
	}
	err := w.adviseServices()
	return w.list, err
}

type loginWarner struct {
	rules  Rules
	reader store.Reader
	// logins are the logins to check alone. services are those to check with the logins that
	// apply to them.
	logins   map[model.Key]*model.Login
	services map[model.Key]bool
	list     []string
}

func sortedKeys[V any](m map[model.Key]V) []model.Key {
	return slices.SortedFunc(maps.Keys(m), func(a, b model.Key) int { return strings.Compare(a.Path(), b.Path()) })
}

func (w *loginWarner) warn(format string, args ...any) {
	w.list = append(w.list, fmt.Sprintf(format, args...))
}

// gather collects what to check after one change.
func (w *loginWarner) gather(c store.Written) error {
	if c.Key.Kind == model.KindServiceSecret {
		w.services[c.Key.Owner()] = true
	}
	if c.After == nil {
		return nil
	}
	switch o := c.After.(type) {
	case *model.Secret:
		return w.gatherUsers(o, c.Before)
	case *model.Filter, *model.GlobalConfig:
		l := loginOf(o)
		if l == nil {
			return nil
		}
		w.logins[c.Key] = l
		if c.Key.Kind == model.KindGlobalConfig {
			return w.gatherProxies(c.Key)
		}
		return w.gatherLinks(model.KindServiceFilter, c.Key)
	case *model.Proxy:
		if was, _ := c.Before.(*model.Proxy); was != nil && was.TrustedHops != o.TrustedHops {
			return w.gatherLinks(model.KindProxyService, c.Key)
		}
	case *model.ProxyGlobalConfig:
		return w.gatherLinks(model.KindProxyService, c.Key.Owner())
	case *model.ProxyService:
		w.services[c.Key.Attached()] = true
	case *model.Service:
		if was, _ := c.Before.(*model.Service); was != nil &&
			(was.FQDN != o.FQDN || was.HTTPS != o.HTTPS || was.Public != o.Public) {
			w.services[c.Key] = true // the links of a new service are new
		}
	case *model.Route:
		if o.Config.Match == "exact" {
			w.services[c.Key.Owner()] = true
		}
	case *model.ServiceFilter:
		w.services[c.Key.Owner()] = true
	}
	return nil
}

// gatherLinks collects the services at the other end of links.
func (w *loginWarner) gatherLinks(kind model.Kind, to ...model.Key) error {
	links, err := w.reader.List(store.Query{Kind: kind, To: to, Limit: maxAttachments + 1})
	for _, l := range links {
		for _, end := range []model.Key{l.Key().Owner(), l.Key().Attached()} {
			if end.Kind == model.KindService {
				w.services[end] = true
			}
		}
	}
	return err
}

// gatherProxies collects the services of the proxies to which a global config applies.
func (w *loginWarner) gatherProxies(global model.Key) error {
	links, err := w.reader.List(store.Query{
		Kind: model.KindProxyGlobalConfig, To: []model.Key{global}, Limit: maxAttachments + 1,
	})
	if err != nil || len(links) == 0 {
		if err == nil {
			err = w.gatherLinks(model.KindProxyService)
		}
		return err
	}
	var proxies []model.Key
	for _, l := range links {
		proxies = append(proxies, l.Key().Owner())
	}
	return w.gatherLinks(model.KindProxyService, proxies...)
}

// gatherUsers collects the logins that name a secret whose value changed.
func (w *loginWarner) gatherUsers(s *model.Secret, before model.Object) error {
	was, _ := before.(*model.Secret)
	if was == nil || s.Value == "" || was.Value == s.Value {
		return nil
	}
	for _, kind := range []model.Kind{model.KindFilter, model.KindGlobalConfig} {
		users, err := w.reader.List(store.Query{Kind: kind, To: []model.Key{s.Key()}, Limit: maxAttachments})
		if err != nil {
			return err
		}
		for _, u := range users {
			if l := loginOf(u); l != nil {
				w.logins[u.Key()] = l
			}
		}
	}
	return nil
}

// adviseLogin checks a login alone, with its secrets and upstream.
func (w *loginWarner) adviseLogin(key model.Key, l *model.Login) error {
	for _, text := range l.Advice() {
		w.warn("%s %s", key.Path(), text)
	}
	for _, f := range []struct {
		secret string
		advice func(string) string
	}{{l.ClientSecret.Secret, l.ClientSecretAdvice}, {l.CookieSecret, model.CookieSecretAdvice}} {
		text, err := w.textOf(f.secret)
		if err != nil {
			return err
		}
		if text != "" && f.advice(text) != "" {
			w.warn("%s names secret %q, which %s", key.Path(), f.secret, f.advice(text))
		}
	}
	if l.Upstream == "" {
		return nil
	}
	u, found, err := find[*model.Upstream](w.reader, model.UpstreamKey(l.Upstream))
	if !found {
		return err
	}
	if scheme, _, _ := strings.Cut(l.TokenEndpoint, "://"); scheme != "" && (scheme == "https") != u.SpeaksTLS() {
		w.warn("%s has a token_endpoint that is %s, and its upstream %q has the protocol %s: where it is attached, "+
			"services answer 503", key.Path(), scheme, u.Name, u.Protocol)
	}
	return nil
}

// textOf returns the value of a secret; empty if it cannot be read here.
func (w *loginWarner) textOf(name string) (string, error) {
	if name == "" || w.rules.Unseal == nil {
		return "", nil
	}
	s, found, err := find[*model.Secret](w.reader, model.SecretKey(name))
	if !found {
		return "", err
	}
	text, err := s.OpenValue(w.rules.Unseal)
	if err != nil {
		return "", nil //nolint:nilerr // its users report this
	}
	return text, nil
}

// adviseServices checks the services with the logins that apply to them.
func (w *loginWarner) adviseServices() error {
	if len(w.services) == 0 {
		return nil
	}
	h, err := w.readLogins()
	if err != nil || h == nil {
		return err
	}
	for _, key := range sortedKeys(w.services) {
		svc, found, err := find[*model.Service](w.reader, key)
		if err == nil && found {
			err = w.adviseService(svc, h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// loginsInForce are the logins of services and proxies.
type loginsInForce struct {
	// filters are the login filters of services. replaced are the services that require
	// something else instead.
	filters  map[model.Key][]model.Key
	replaced map[model.Key]bool
	// proxies are the proxies that a service is attached to. globals are the logins that apply
	// to a proxy.
	proxies map[model.Key][]*model.Proxy
	globals map[string][]model.Key
	logins  map[model.Key]*model.Login
}

// readLogins reads the logins that apply to the services; nil if there are none.
func (w *loginWarner) readLogins() (*loginsInForce, error) {
	h := &loginsInForce{
		filters: map[model.Key][]model.Key{}, replaced: map[model.Key]bool{}, proxies: map[model.Key][]*model.Proxy{},
		globals: map[string][]model.Key{}, logins: map[model.Key]*model.Login{},
	}
	services := slices.Collect(maps.Keys(w.services))
	links, err := w.reader.List(store.Query{Kind: model.KindServiceFilter, To: services})
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		f, found, err := find[*model.Filter](w.reader, l.Key().Attached())
		if err != nil {
			return nil, err
		}
		if found && saysWho(f) {
			h.replaced[l.Key().Owner()] = true
		}
		if login := loginOf(f); found && login != nil {
			h.filters[l.Key().Owner()] = append(h.filters[l.Key().Owner()], f.Key())
			h.logins[f.Key()] = login
		}
	}
	globals, err := readInForce(w.reader)
	if err != nil {
		return nil, err
	}
	for key, obj := range globals {
		if login := loginOf(obj); login != nil {
			h.logins[key] = login
		}
	}
	if len(h.logins) == 0 {
		return nil, nil
	}
	return h, w.readProxies(h, globals, services)
}

func (w *loginWarner) readProxies(h *loginsInForce, globals globalConfigs, services []model.Key) error {
	links, err := w.reader.List(store.Query{Kind: model.KindProxyService, To: services})
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, l := range links {
		p, found, err := find[*model.Proxy](w.reader, l.Key().Owner())
		if err != nil {
			return err
		}
		if found {
			names[p.Name] = true
			h.proxies[l.Key().Attached()] = append(h.proxies[l.Key().Attached()], p)
		}
	}
	for name, tree := range globals.trees(names) {
		for _, g := range tree.GlobalConfigs {
			if h.logins[g.Key()] != nil {
				h.globals[name] = append(h.globals[name], g.Key())
			}
		}
	}
	return nil
}

// on returns the logins that apply to a service, each with the proxies on which it does.
func (h *loginsInForce) on(s *model.Service) map[model.Key][]*model.Proxy {
	in := map[model.Key][]*model.Proxy{}
	proxies, own := h.proxies[s.Key()], h.filters[s.Key()]
	if len(own) > 0 {
		in[own[0]] = proxies
		return in
	}
	if s.Public || h.replaced[s.Key()] {
		return in
	}
	for _, p := range proxies {
		if globals := h.globals[p.Name]; len(globals) == 1 {
			in[globals[0]] = append(in[globals[0]], p)
		}
	}
	return in
}

// adviseService checks one service.
func (w *loginWarner) adviseService(s *model.Service, h *loginsInForce) error {
	own := h.filters[s.Key()]
	switch {
	case len(own) > 1:
		slices.SortFunc(own, func(a, b model.Key) int { return strings.Compare(a.Name(), b.Name()) })
		w.warn("service %q has the logins %s and %s, and only one can apply: it answers 503; detach one", s.Name,
			own[0].Path(), own[1].Path())
		return nil
	case len(own) == 1 && s.Public:
		w.warn("service %q is public, but %s on it still requires a login: Public applies to a globalconfig_oauth only",
			s.Name, own[0].Path())
	case len(own) == 0 && !s.Public && !h.replaced[s.Key()]:
		for _, p := range h.proxies[s.Key()] {
			if globals := h.globals[p.Name]; len(globals) > 1 {
				w.warn("proxy %q has the logins %s and %s, and only one can apply: service %q answers 503 there", p.Name,
					globals[0].Path(), globals[1].Path(), s.Name)
			}
		}
	}
	in := h.on(s)
	if len(in) == 0 {
		return nil
	}
	return w.advisePlaces(s, in, h)
}

func (w *loginWarner) advisePlaces(s *model.Service, in map[model.Key][]*model.Proxy, h *loginsInForce) error {
	certificates := certificateWarner{reader: w.reader}
	secrets, err := certificates.secretsOf(s.Key())
	if err != nil {
		return err
	}
	certified := slices.ContainsFunc(secrets, func(c *model.Secret) bool { return c.IsPair() && c.NotFor(s.FQDN) == "" })
	routes, err := store.List[*model.Route](w.reader,
		store.Query{Kind: model.KindRoute, To: []model.Key{s.Key()}, Limit: maxAttachments})
	if err != nil {
		return err
	}
	for _, key := range sortedKeys(in) {
		l := h.logins[key]
		direct := slices.ContainsFunc(in[key], func(p *model.Proxy) bool { return p.TrustedHops == 0 })
		for _, text := range l.AdviceFor(s, certified, direct) {
			w.warn("%s %s", key.Path(), text)
		}
		for _, r := range routes {
			if l.TakesFrom(r) {
				w.warn("%s is for %s, which %s answers: it gets no request", r.Key().Path(), r.Prefix, key.Path())
			}
		}
	}
	return nil
}
