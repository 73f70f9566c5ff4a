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
	tokens := map[string]*Tokens{}
	add := func(d demands) {
		if t := d.allTokens(); t != nil {
			tokens[t.Check.Name] = t
		}
	}
	add(d)
	for _, of := range h.Routes {
		for _, r := range of.All() {
			add(ofRoute(r))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		out.Providers = append(out.Providers, namedCheck(tokens[name].checks()...))
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
		out.Providers = []Provider{namedCheck(l.Token)}
	}
	return out
}

// namedCheck returns the part for the checks of one place.
func namedCheck(checks ...*TokenCheck) Provider {
	first := checks[0]
	from, _ := path.Split(first.Name)
	return Provider{Name: first.Name, Config: first.Config(checks[1:]...), Of: ownerOf(strings.TrimSuffix(from, "/"))}
}

// ownerOf returns the key of the filter or global config that a login or a check is named after.
func ownerOf(of string) model.Key {
	kind, name, _ := strings.Cut(of, "/")
	return model.NewKey(model.Kind(kind), name)
}
