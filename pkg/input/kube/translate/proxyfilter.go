package translate

import (
	"maps"
	"reflect"
	"slices"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// proxyFilter returns the filter of a GlobalConfig whose type is that of a filter; nil for another one. Its name is one
// that no RouteFilter has, so no GatewayHost can name it, nor be exempt from it.
func (s *scope) proxyFilter(typeName string) *model.Filter {
	if !slices.Contains(model.ConfigTypes(model.KindFilter), typeName) {
		return nil
	}
	return &model.Filter{Name: proxyFilterName(s.of), Type: typeName}
}

func proxyFilterName(globalConfig Ref) string {
	return ownName(globalConfig.Namespace, globalConfig.Name, "proxy")
}

// putProxyFilter makes a filter, and attaches it to the proxies. In the place of one that cannot be used is one that
// refuses everything, which no filter of a host can replace.
func (s *scope) putProxyFilter(f *model.Filter, o *gatewayv1.GlobalConfig) {
	if !f.FitsOn(model.KindProxy) {
		s.problem("spec.type", Invalid, "a filter of this type cannot be on a proxy: it %s", f.ProxyRefusal())
		return
	}
	if !s.readFilter(f, configField, o.Spec.Config) {
		const nowhere = `["255.255.255.255/32"]`
		if f.TypeName() == model.FilterIPAccess { // connections have it, too
			f.Config = `{"allow":` + nowhere + `}`
		} else {
			f.Type, f.Config = model.FilterRBAC, `{"allow":[{"addresses":`+nowhere+`}]}`
		}
	}
	s.make(f, "")
	for _, proxy := range s.proxies {
		s.make(&model.ProxyFilter{Proxy: proxy, Filter: f.Name}, "spec.type")
	}
	if o.Spec.Proxy == "" {
		s.onAll = f.Name
	}
}

// kindOnAll is the kind of a reference that stands for the filters that are on all proxies.
const kindOnAll = "filters of all proxies"

// replaceOnAll records a filter that is on all proxies in the place of another one.
func (w *World) replaceOnAll(old, now string) {
	delete(w.onAll, old)
	if now != "" {
		w.onAll[now] = struct{}{}
	}
	w.markUsers(Ref{Kind: kindOnAll})
}

// filtersOfAll attaches the filters that are on all proxies to one that the settings of the installation do not have.
func (s *scope) filtersOfAll(proxy string) {
	s.use(Ref{Kind: kindOnAll})
	for name := range s.world.onAll {
		s.make(&model.ProxyFilter{Proxy: proxy, Filter: name}, "")
	}
}

// kindExempt is the kind of a reference that stands for all exemptions of a host.
const kindExempt = "exempt"

// maxExempt bounds the filters of proxies from which a host or route is exempt, as the model does. The others apply.
const maxExempt = 32

// setExempt records the hosts that a GlobalConfig exempts. old are those that it exempted before.
func (w *World) setExempt(globalConfig Ref, old, now []gatewayv1.ExemptHost) {
	if reflect.DeepEqual(old, now) {
		return
	}
	for _, e := range old {
		host := exemptOf(e)
		if delete(w.exempt[host], globalConfig); len(w.exempt[host]) == 0 {
			delete(w.exempt, host)
		}
		w.markUsers(host)
	}
	for _, e := range now {
		host := exemptOf(e)
		if w.exempt[host] == nil {
			w.exempt[host] = map[Ref][]string{}
		}
		routes := e.Routes
		if len(routes) == 0 {
			routes = []string{allRoutes}
		}
		w.exempt[host][globalConfig] = append(w.exempt[host][globalConfig], routes...)
		w.markUsers(host)
	}
}

func exemptionsOf(o *gatewayv1.GlobalConfig) []gatewayv1.ExemptHost {
	if o == nil {
		return nil
	}
	return o.Spec.Exempt
}

// allRoutes stands for the routes of a host. No route has the name.
const allRoutes = ""

func exemptOf(e gatewayv1.ExemptHost) Ref {
	return Ref{kindExempt, string(e.Namespace), string(e.Name)}
}

// exemptions returns the filters of proxies from which the host, or a route of it, is exempt, by the name of the route.
func (s *scope) exemptions() map[string][]string {
	host := Ref{kindExempt, s.of.Namespace, s.of.Name}
	s.use(host)
	by := map[string][]string{}
	for _, globalConfig := range slices.SortedFunc(maps.Keys(s.world.exempt[host]), Ref.Compare) {
		for _, route := range s.world.exempt[host][globalConfig] {
			if name := proxyFilterName(globalConfig); len(by[route]) < maxExempt && !slices.Contains(by[route], name) {
				by[route] = append(by[route], name)
			}
		}
	}
	return by
}
