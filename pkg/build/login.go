package build

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// encodeFilterClusters encodes what the filters of a host name: its login, what verifies tokens, and the
// clusters that other filters call.
func encodeFilterClusters(h *ir.Host, cache *clusterCache) (named snapshot.Named, needs snapshot.Needs, err error) {
	if named, needs, err = encodeLogin(h.Login, cache); err != nil {
		return named, needs, err
	}
	asked, names, err := cache.encodeCallClusters(h.Asked)
	named.Clusters, named.Secrets = append(named.Clusters, asked.Clusters...), append(named.Secrets, asked.Secrets...)
	needs.Clusters = append(needs.Clusters, names...)
	if err != nil {
		return named, needs, err
	}
	return named, needs, encodeTokens(h, &named, &needs)
}

// encodeLogin encodes what the login of a host names; nothing if there is no login.
func encodeLogin(l *ir.Login, cache *clusterCache) (named snapshot.Named, needs snapshot.Needs, err error) {
	if l == nil {
		return named, needs, nil
	}
	from := loginKey(l.Name)
	if named, err = cache.encode(l.Cluster); err != nil {
		return named, needs, err
	}
	named = snapshot.Named{Clusters: slices.Clone(named.Clusters), Secrets: slices.Clone(named.Secrets)}
	needs.Clusters = []string{l.Cluster.Name}
	for _, s := range translate.SecretsOfLogin(l) {
		r, err := snapshot.NewSecret(s, objectRef(from))
		if err != nil {
			return named, needs, err
		}
		named.Secrets = append(named.Secrets, r)
		needs.Secrets = append(needs.Secrets, s.GetName())
	}
	err = encodeTokenCheck(l.Token, &named, &needs)
	return named, needs, err
}

// encodeTokenCheck adds what verifies tokens, if t is not nil.
func encodeTokenCheck(t *ir.TokenCheck, named *snapshot.Named, needs *snapshot.Needs) error {
	if t == nil {
		return nil
	}
	from, _ := path.Split(t.Name)
	p, err := snapshot.NewProvider(t.Name, translate.TokenCheck(t), objectRef(loginKey(strings.TrimSuffix(from, "/"))))
	if err != nil {
		return err
	}
	named.Providers, needs.Providers = append(named.Providers, p), append(needs.Providers, p.Name)
	return nil
}

// encodeTokens adds what verifies the tokens of a host and its routes.
func encodeTokens(h *ir.Host, named *snapshot.Named, needs *snapshot.Needs) error {
	checks := map[string]*ir.TokenCheck{}
	if t := h.AllTokens(); t != nil {
		checks[t.Check.Name] = t.Check
	}
	for _, of := range h.Routes {
		for _, r := range of.All() {
			if t := r.AllTokens(); t != nil {
				checks[t.Check.Name] = t.Check
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if err := encodeTokenCheck(checks[name], named, needs); err != nil {
			return err
		}
	}
	return nil
}

// loginKey returns the key of the filter or global config that a login or a check is named after.
func loginKey(of string) model.Key {
	kind, name, _ := strings.Cut(of, "/")
	return model.NewKey(model.Kind(kind), name)
}

// withLogin returns the parts of a service with the login of a proxy's global config. They are unchanged if
// there is none, and a fixed 503 if it cannot be enforced.
func (b *Build) withLogin(p *proxy, s *service, name string) (*snapshot.Parts, *model.Condition) {
	if p.login == nil || !compile.TakesGlobalLogin(b.config.Service(name)) {
		return s.parts, nil
	}
	parts, err := p.login.addTo(s)
	if err == nil {
		return parts, nil
	}
	closed := *s.parts
	closed.Host, closed.Named = b.head.Unavailable(s.parts.Host), snapshot.Named{}
	return &closed, &model.Condition{
		Key: model.ProxyServiceKey(p.name, name), Code: model.Quarantined,
		Message: err.Error() + `. On proxy "` + p.name + `" the service answers 503 and lets nobody in`,
	}
}

// globalLogin is the login for the services of a proxy. It is built once for all of them.
type globalLogin struct {
	login *ir.Login
	// reserved are the routes of the login. named are the resources that it names.
	reserved []*snapshot.Route
	named    snapshot.Named
	needs    snapshot.Needs
	// err is why it cannot be enforced.
	err error
}

// newGlobalLogin builds the login of a proxy; nil if there is none.
func newGlobalLogin(t *model.ProxyTree, in builder) *globalLogin {
	login, err := compile.GlobalLogin(t, in.settings)
	if login == nil && err == nil {
		return nil
	}
	g := &globalLogin{login: login, err: err}
	if err == nil {
		g.named, g.needs, g.err = encodeLogin(login, in.clusters)
	}
	if g.err == nil {
		g.reserved, g.err = encodeRoutes(compile.ReservedRoutes(login))
	}
	return g
}

// addTo returns the parts of a service with the login.
func (g *globalLogin) addTo(s *service) (*snapshot.Parts, error) {
	if g.err != nil {
		return nil, g.err
	}
	host, err := compile.WithLogin(s.host, g.login)
	if err != nil {
		return nil, err
	}
	vh, err := translate.VirtualHost(host)
	if err != nil {
		return nil, err
	}
	all := newNames()
	all.add(s.parts.Named)
	all.add(g.named)
	parts := *s.parts
	parts.Named = all.sorted()
	parts.Host, err = parts.Host.With(vh, g.reserved, g.needs)
	return &parts, err
}

// globalLogins are what the login of a proxy is built from.
type globalLogins struct {
	configs []*model.ParsedGlobalConfig
	named   map[model.Key]model.Object
}

func loginsOf(t *model.ProxyTree) globalLogins {
	l := globalLogins{named: t.Named}
	for _, g := range t.GlobalConfigs {
		if g.Type == model.GlobalConfigOAuth {
			l.configs = append(l.configs, g)
		}
	}
	return l
}

func (l globalLogins) equal(o globalLogins) bool {
	return slices.Equal(l.configs, o.configs) && (len(l.configs) == 0 || maps.Equal(l.named, o.named))
}
