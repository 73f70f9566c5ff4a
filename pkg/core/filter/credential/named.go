package credential

import (
	"maps"
	"path"
	"slices"
	"strings"

	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Named is what the messages of a host and of its routes name, by the object that it comes from.
type Named struct {
	Clusters  []*ir.Cluster
	Secrets   []Secret
	Providers []Provider
}

// Secret is a secret of a login.
type Secret struct {
	*tlsv3.Secret
	Of model.Key
}

// Provider is a part of the filter that verifies tokens.
type Provider struct {
	Name   string
	Config *jwtv3.JwtAuthentication
	Of     model.Key
}

// NamedBy returns what a host and its routes name.
func NamedBy(h *ir.Host) Named {
	d := ofHost(h)
	out := d.login.Named()
	checks := map[string]*TokenCheck{}
	add := func(d demands) {
		if t := d.allTokens(); t != nil {
			checks[t.Check.Name] = t.Check
		}
	}
	add(d)
	for _, of := range h.Routes {
		for _, r := range of.All() {
			add(ofRoute(r))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		out.Providers = append(out.Providers, checks[name].provider())
	}
	return out
}

// Named returns what a login names.
func (l *Login) Named() (out Named) {
	if l == nil {
		return out
	}
	out.Clusters = []*ir.Cluster{l.Cluster}
	for _, s := range secretsOf(l) {
		out.Secrets = append(out.Secrets, Secret{s, ownerOf(l.Name)})
	}
	if l.Token != nil {
		out.Providers = []Provider{l.Token.provider()}
	}
	return out
}

func (t *TokenCheck) provider() Provider {
	from, _ := path.Split(t.Name)
	return Provider{Name: t.Name, Config: t.Config(), Of: ownerOf(strings.TrimSuffix(from, "/"))}
}

// ownerOf returns the key of the filter or global config that a login or a check is named after.
func ownerOf(of string) model.Key {
	kind, name, _ := strings.Cut(of, "/")
	return model.NewKey(model.Kind(kind), name)
}
