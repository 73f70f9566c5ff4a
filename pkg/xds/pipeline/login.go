package pipeline

import (
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// encodeFilterClusters encodes what the filters of a host name: its login, what verifies tokens, and the
// clusters that other filters call.
func encodeFilterClusters(h *ir.Host, cache *clusterCache) (named snapshot.Named, needs snapshot.Needs, err error) {
	named, needs, err = encodeNamed(credential.NamedBy(h), cache)
	if err != nil {
		return named, needs, err
	}
	asked, names, err := cache.encodeCallClusters(h.Asked)
	named.Clusters, named.Secrets = append(named.Clusters, asked.Clusters...), append(named.Secrets, asked.Secrets...)
	needs.Clusters = append(needs.Clusters, names...)
	return named, needs, err
}

// encodeNamed encodes what the credentials of a host name.
func encodeNamed(by credential.Named, cache *clusterCache) (named snapshot.Named, needs snapshot.Needs, err error) {
	for _, c := range by.Clusters {
		if err := cache.encodeInto(&named, c); err != nil {
			return named, needs, err
		}
		needs.Clusters = append(needs.Clusters, c.Name)
	}
	for _, s := range by.Secrets {
		r, err := snapshot.NewSecret(s.Secret, objectRef(s.Of))
		if err != nil {
			return named, needs, err
		}
		named.Secrets, needs.Secrets = append(named.Secrets, r), append(needs.Secrets, r.Name)
	}
	for _, p := range by.Providers {
		r, err := snapshot.NewProvider(p.Name, p.Config, objectRef(p.Of))
		if err != nil {
			return named, needs, err
		}
		named.Providers, needs.Providers = append(named.Providers, r), append(needs.Providers, r.Name)
	}
	return named, needs, nil
}

// withLogin returns the parts of a service with the login of a proxy's global config. They are unchanged if
// there is none, and a fixed 503 if it cannot be enforced.
func (b *Build) withLogin(p *proxy, s *service, name string) (*snapshot.Parts, *model.Condition) {
	if p.login == nil || !credential.TakesGlobalLogin(b.treeOn(p, name)) {
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
	login *credential.Login
	// reserved are the routes of the login. named are the resources that it names.
	reserved []*snapshot.Route
	named    snapshot.Named
	needs    snapshot.Needs
	// err is why it cannot be enforced.
	err error
}

// newGlobalLogin builds the login of a proxy; nil if there is none.
func newGlobalLogin(t *model.ProxyTree, in builder) *globalLogin {
	login, err := credential.GlobalLogin(t.GlobalConfigs, compile.Places(t.Named, in.settings))
	if login == nil && err == nil {
		return nil
	}
	g := &globalLogin{login: login, err: err}
	if err == nil {
		g.named, g.needs, g.err = encodeNamed(login.Named(), in.clusters)
	}
	if g.err == nil {
		g.reserved, g.err = encodeRoutes(credential.ReservedRoutes(login))
	}
	return g
}

// addTo returns the parts of a service with the login.
func (g *globalLogin) addTo(s *service) (*snapshot.Parts, error) {
	if g.err != nil {
		return nil, g.err
	}
	host, err := credential.WithLogin(s.host, g.login)
	if err != nil {
		return nil, err
	}
	vh, err := translate.VirtualHost(host)
	if err != nil {
		return nil, err
	}
	// The metadata replaces that of the host, so it has to have what other filters say too.
	whole := *s.host
	if err := g.login.AddTo(&whole); err != nil {
		return nil, err
	}
	of, err := translate.VirtualHost(&whole)
	if err != nil {
		return nil, err
	}
	vh.Metadata = of.GetMetadata()
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
