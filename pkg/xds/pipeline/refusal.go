package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
)

// RouteRefusals checks which routes of one configuration cannot work.
type RouteRefusals struct{ clusters *clusterCache }

// NewRouteRefusals returns a RouteRefusals that encodes each cluster of a configuration once.
func NewRouteRefusals() RouteRefusals { return RouteRefusals{newClusterCache(newSecretCache())} }

// Of returns why a route cannot work. A route without upstreams is valid.
func (r RouteRefusals) Of(t *model.RouteTree) error {
	judged := *t
	judged.Named = map[model.Key]model.Object{}
	maps.Copy(judged.Named, t.Named)
	judged.Filters = withStandIns(t.Filters, judged.Named)
	if made := (builder{clusters: r.clusters, settings: anyText()}).route(&judged); made.condition != nil &&
		made.condition.Code == model.Quarantined {
		return errors.New(made.condition.Message)
	}
	return nil
}

// ServiceRefusal returns why a service with its filters cannot work, regardless of its routes.
func ServiceRefusal(t *model.ServiceTree) error {
	for _, f := range t.Filters {
		if f.Fault != nil {
			return fmt.Errorf("the service has filter %s, which cannot be read (%w)", f.Name, f.Fault)
		}
	}
	if what := compile.Clash(t.Filters); what != "" {
		return errors.New("the service " + what + " and would answer 503")
	}
	judged := &model.ServiceTree{Service: t.Service, Named: map[model.Key]model.Object{}}
	maps.Copy(judged.Named, t.Named)
	judged.Filters = withStandIns(t.Filters, judged.Named)
	host, _ := compile.Host(judged, nil, anyText(), nil)
	return hostRefusal(host, t.Service.Key())
}

// MaxRoutes returns how many routes a service with these filters may have, and why it cannot have more; nil means that
// it may have any number.
func MaxRoutes(filters []*model.ParsedFilter) (most int, why error) {
	most, wrong := compile.MaxRoutes(filters)
	if wrong == "" {
		return 0, nil
	}
	return most, errors.New("the service " + wrong + " and would answer 503")
}

// closedBy returns why a service must answer 503: what Envoy would refuse of it, a filter that cannot be
// enforced, or what was found before. Nil means that it need not.
func closedBy(tree *model.ServiceTree, found *model.Condition, broken error) *model.Condition {
	if broken != nil {
		return &model.Condition{
			Key: tree.Service.Key(), Code: model.Quarantined, Message: "Envoy would refuse the service: " + broken.Error(),
		}
	}
	return cmp.Or(compile.ClosedHost(tree), found)
}

// hostRefusal returns why a host cannot work, regardless of its routes.
func hostRefusal(h *ir.Host, from model.Key) error {
	_, needs, err := encodeFilterClusters(h, newClusterCache(newSecretCache()))
	if err != nil {
		return err
	}
	reserved, err := encodeRoutes(h.Reserved)
	if err != nil {
		return err
	}
	_, err = encodeHost(h, reserved, from, needs)
	return err
}

// withStandIns returns filters as if their identity providers had answered, so that the check does not depend on
// whether they do. It adds what else a login or a password needs to named, so that these themselves are checked.
func withStandIns(filters []*model.ParsedFilter, named map[model.Key]model.Object) []*model.ParsedFilter {
	list := slices.Clone(filters)
	for i, f := range filters {
		spec, objects := credential.StandIn(f.Spec)
		if spec != f.Spec {
			known := *f
			known.Spec = spec
			list[i] = &known
		}
		for _, o := range objects {
			named[o.Key()] = o
		}
	}
	return list
}

// ProxyRefusal returns why a proxy cannot work.
func ProxyRefusal(t *model.ProxyTree) error {
	_, _, err := encodeListener(
		compile.Listener(t, compile.Settings{}, ir.Needs{}), t.Proxy.Key(), newClusterCache(newSecretCache()),
	)
	return err
}

// GlobalConfigRefusal returns why a global config cannot work.
func GlobalConfigRefusal(g *model.GlobalConfig) error {
	parsed := g.Parse()
	if d := limits.DomainOf(parsed); d != nil {
		return ratelimit.Check(d)
	}
	named := map[model.Key]model.Object{}
	spec, objects := credential.StandIn(parsed.Spec)
	for _, o := range objects {
		named[o.Key()] = o
	}
	parsed.Spec = spec
	login, err := credential.GlobalLogin([]*model.ParsedGlobalConfig{parsed}, compile.Places(named, anyText()))
	if login == nil {
		return err
	}
	host, err := credential.WithLogin(&ir.Host{Name: "any", Domain: "any.invalid"}, login)
	if err != nil {
		return err
	}
	return hostRefusal(host, g.Key())
}

// Forwards reports whether a route sends requests to an upstream if the keys of its tokens are known.
func Forwards(t *model.RouteTree) bool {
	judged := *t
	judged.Filters = withStandIns(t.Filters, map[model.Key]model.Object{})
	r, _ := compile.Route(&judged, anything())
	return r.Forward != nil
}

// anything returns settings to check a route alone, regardless of this machine.
func anything() compile.Settings {
	return compile.Settings{
		Authorities: "any", Lua: true, Upstreams: egress.Lists{AnySocket: true},
		Open: func(string, string) (string, error) { return "", nil },
	}
}

// anyText returns the same settings, with a value in every secret.
func anyText() compile.Settings {
	s := anything()
	s.Open = func(string, string) (string, error) { return "any text of any length, and never too short", nil }
	return s
}
