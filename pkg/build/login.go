package build

import (
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// encodeLogin makes what the login of a host names; nothing if it has none.
func encodeLogin(l *ir.Login, cache *clusterCache) (named snapshot.Named, needs snapshot.Needs, err error) {
	if l == nil {
		return named, needs, nil
	}
	from := loginKey(l)
	if named, err = cache.encode(l.Cluster); err != nil {
		return named, needs, err
	}
	named = snapshot.Named{Clusters: named.Clusters, Secrets: slices.Clone(named.Secrets)}
	needs.Clusters = []string{l.Cluster.Name}
	for _, s := range translate.SecretsOfLogin(l) {
		r, err := snapshot.NewSecret(s, objectRef(from))
		if err != nil {
			return named, needs, err
		}
		named.Secrets = append(named.Secrets, r)
		needs.Secrets = append(needs.Secrets, s.GetName())
	}
	if l.Token == nil {
		return named, needs, nil
	}
	p, err := snapshot.NewProvider(l.Token.Name, translate.TokenCheck(l.Token), objectRef(from))
	if err != nil {
		return named, needs, err
	}
	named.Providers, needs.Providers = []*snapshot.Resource{p}, []string{p.Name}
	return named, needs, nil
}

// loginKey is the key of the filter or global config that a login is of.
func loginKey(l *ir.Login) model.Key {
	kind, name, _ := strings.Cut(l.Name, "/")
	return model.NewKey(model.Kind(kind), name)
}

// withGlobalLogin are the parts of a service with the login that a global config of a
// proxy asks for, as they are if there is none, and a fixed 503 if it cannot be enforced.
func (b *Build) withGlobalLogin(s *service, name string, t *model.ProxyTree) (*snapshot.Parts, *model.Condition) {
	host, err := compile.GlobalLogin(s.host, b.config.Service(name), t, b.settings)
	if host == nil && err == nil {
		return s.parts, nil
	}
	parts := *s.parts
	if err == nil {
		err = b.addGlobalLogin(&parts, host)
	}
	if err == nil {
		return &parts, nil
	}
	parts.Host, parts.Named = b.head.Unavailable(s.parts.Host), snapshot.Named{}
	return &parts, &model.Condition{
		Key: model.ProxyServiceKey(t.Proxy.Name, name), Code: model.Quarantined,
		Message: "the login of the proxy cannot be enforced: " + err.Error() + `. On proxy "` + t.Proxy.Name + `" the service answers 503 and lets nobody in`,
	}
}

func (b *Build) addGlobalLogin(parts *snapshot.Parts, h *ir.Host) error {
	named, needs, err := encodeLogin(h.Login, newClusterCache(b.secrets))
	if err != nil {
		return err
	}
	vh, err := translate.VirtualHost(h)
	if err != nil {
		return err
	}
	first, err := encodeRoutes(h.Reserved)
	if err != nil {
		return err
	}
	all := newNames()
	all.add(parts.Named)
	all.add(named)
	parts.Named = all.sorted()
	parts.Host, err = parts.Host.With(vh, first, needs)
	return err
}

// globalLogins are what decides about the logins of a proxy.
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
