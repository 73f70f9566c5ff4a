package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// claim is something that only one object can have: of a proxy the host name of a GatewayHost or the login for all
// hosts, or the credential of a Consumer.
type claim struct{ kind, proxy, host string }

// claimsOf lists what a unit claims.
func (w *World) claimsOf(u *unit) []claim {
	switch o := u.object.(type) {
	case *gatewayv1.GatewayHost:
		fqdn := o.Spec.VirtualHost.FQDN
		if proxy := w.proxyOf(string(o.Spec.Proxy)); proxy != "" && fqdn != "" && w.hosts.allow(o.Namespace, fqdn) {
			return []claim{{u.ref.Kind, proxy, w.place(proxy, serviceOf(o))}}
		}
	case *gatewayv1.Consumer:
		var list []claim
		for _, c := range credentialsOf(o) {
			list = append(list, c.claim())
		}
		slices.SortFunc(list, func(a, b claim) int { return strings.Compare(a.host, b.host) })
		return slices.Compact(list)
	case *gatewayv1.GlobalConfig:
		if g := (&model.GlobalConfig{Type: string(o.Spec.Type)}); g.TypeName() != model.GlobalConfigOAuth {
			return nil
		}
		var list []claim
		for _, proxy := range w.proxiesOf(string(o.Spec.Proxy)) {
			list = append(list, claim{u.ref.Kind, proxy, ""})
		}
		return list
	}
	return nil
}

// place returns what a service has alone on a proxy: its host, its port, or its host on a port of its own.
func (w *World) place(proxy string, svc *model.Service) string {
	host := strings.ToLower(svc.FQDN)
	for _, p := range w.proxies {
		if p.Name != proxy {
			continue
		}
		switch port, transport, own := p.Port(svc); {
		case !own:
		case svc.Mode == model.ModeTLS:
			return fmt.Sprintf("%s on port %d", host, port)
		default:
			return fmt.Sprintf("%s port %d", strings.ToUpper(transport), port)
		}
	}
	return host
}

// serviceOf returns the service of a GatewayHost with its host, mode and port.
func serviceOf(h *gatewayv1.GatewayHost) *model.Service {
	svc := model.NewService()
	svc.Name, svc.FQDN = objectName(h.Namespace, h.Name), h.Spec.VirtualHost.FQDN
	svc.Mode = cmp.Or(h.Spec.VirtualHost.Mode, model.ModeHTTP)
	if port := h.Spec.VirtualHost.Port; port != nil {
		svc.Port = int(*port)
	}
	return svc
}

// portRefusal returns why a proxy cannot have the port of a service; empty means that it can.
func (w *World) portRefusal(proxy string, svc *model.Service) string {
	for _, p := range w.proxies {
		if p.Name == proxy {
			return p.PortRefusal(svc)
		}
	}
	return ""
}

// proxyOf returns the proxy that a GatewayHost names; empty if it is not one of the
// installation's.
func (w *World) proxyOf(name string) string {
	for _, p := range w.proxies {
		if name == "" || p.Name == name {
			return p.Name
		}
	}
	return ""
}

// proxiesOf returns the proxies that a GlobalConfig names, sorted.
func (w *World) proxiesOf(name string) []string {
	var list []string
	for _, p := range w.proxies {
		if name == "" || p.Name == name {
			list = append(list, p.Name)
		}
	}
	slices.Sort(list)
	return list
}

// claim records what a unit claims now. If another unit now has something, all units that
// claim it are translated again.
func (w *World) claim(u *unit, now []claim) {
	for _, c := range u.claims {
		if !slices.Contains(now, c) {
			w.setClaimants(c, slices.DeleteFunc(slices.Clone(w.claims[c]), func(o *unit) bool { return o == u }))
		}
	}
	for _, c := range now {
		if !slices.Contains(u.claims, c) {
			list := w.claims[c]
			at, _ := slices.BinarySearchFunc(list, u, older)
			w.setClaimants(c, slices.Insert(slices.Clone(list), at, u))
		}
	}
	u.claims = now
}

func (w *World) setClaimants(c claim, list []*unit) {
	old := w.claims[c]
	if len(old) == 0 || len(list) == 0 {
		w.markUsers(Ref{kindHolder, c.proxy, c.host})
	}
	if len(list) == 0 {
		delete(w.claims, c)
		return
	}
	w.claims[c] = list
	if len(old) > 0 && old[0] != list[0] {
		for _, u := range list {
			w.mark(u.ref)
		}
	}
}

// older orders units by age, then by namespace and name.
func older(a, b *unit) int {
	at, bt := a.object.GetCreationTimestamp(), b.object.GetCreationTimestamp()
	if c := at.Compare(bt.Time); c != 0 {
		return c
	}
	return a.ref.Compare(b.ref)
}

// holder returns the unit that has what is claimed.
func (w *World) holder(c claim) *unit {
	if list := w.claims[c]; len(list) > 0 {
		return list[0]
	}
	return nil
}
