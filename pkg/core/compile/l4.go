package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// L4Service compiles a service of a mode other than http. pairs are its certificates. If something of it cannot work or
// cannot be enforced, it has no clusters, so that it closes connections and drops datagrams; the conditions say why.
func L4Service(t *model.ServiceTree, pairs []*ir.Pair, s Settings) (*ir.L4Service, []model.Condition) {
	svc := t.Service
	out := &ir.L4Service{Name: svc.Name, Port: svc.Port, UDP: svc.Mode == model.ModeUDP, Order: svc.ID}
	if svc.Mode == model.ModeTLS {
		out.ServerNames = []string{Domain(svc)}
	}
	closed := func(key model.Key, code, what string) (*ir.L4Service, []model.Condition) {
		out.Clusters = nil
		return out, []model.Condition{{Key: key, Code: code, Message: "the service " + what + " and lets nobody in"}}
	}
	if len(t.Secrets) > 0 && svc.Mode != model.ModeUDP {
		if len(pairs) == 0 {
			return closed(svc.Key(), model.Quarantined, "has a certificate whose key cannot be opened")
		}
		sorted := slices.SortedFunc(slices.Values(pairs), func(a, b *ir.Pair) int { return cmp.Compare(a.Secret, b.Secret) })
		out.TLS = &ir.L4TLS{Pairs: sorted}
	}
	if ca := svc.ClientCACertificate; ca != "" {
		switch {
		case out.TLS == nil:
			return closed(svc.Key(), model.Quarantined, "requests client certificates and has no certificate itself")
		case t.ClientCA == nil || t.ClientCA.Cert == "":
			return closed(svc.Key(), model.Quarantined, "cannot request client certificates: secret "+ca+" has no certificate authority,")
		}
		out.TLS.ClientCA = &ir.Authorities{Secret: ca, PEM: t.ClientCA.Cert}
	}
	if why := svc.SecretRefusal(); why != "" && len(t.Secrets) > 0 {
		return closed(svc.Key(), model.Quarantined, why+",")
	}
	filters := t.Filters
	switch len(t.Routes) {
	case 0:
		return closed(svc.Key(), model.NoUpstream, "has no route")
	case 1:
		filters = slices.Concat(filters, t.Routes[0].Filters)
	default:
		return closed(svc.Key(), model.Quarantined, fmt.Sprintf("is of mode %s and has %d routes", svc.Mode, len(t.Routes)))
	}
	route := t.Routes[0]
	key := route.Route.Key()
	for _, f := range filters {
		access, ok := f.Spec.(*model.IPAccessFilter)
		if !ok || f.Fault != nil || f.L4Refusal() != "" {
			return closed(model.ServiceFilterKey(svc.Name, f.Name), model.Quarantined,
				fmt.Sprintf("has filter %s of type %s, which cannot be enforced for connections,", f.Name, f.Type))
		}
		if !addRanges(out, t.Named, access) {
			return closed(model.ServiceFilterKey(svc.Name, f.Name), model.Quarantined,
				fmt.Sprintf("has filter %s, one of whose lists cannot be read,", f.Name))
		}
	}
	if wrong := route.Route.ValidateL4(); len(wrong) > 0 {
		return closed(key, model.Quarantined, "has a route whose "+wrong[0].Field+" "+wrong[0].Message)
	}
	for _, u := range route.Upstreams {
		if why := svc.UpstreamRefusal(u); why != "" {
			return closed(key, model.Quarantined, "has upstream "+u.Name+", which "+why)
		}
	}
	if c := route.Route.Config.Timeouts; c != nil {
		out.IdleTimeout, out.MaxDuration = time.Duration(c.Idle), time.Duration(c.Stream)
	}
	clusters, code, what := clustersOf(route, s)
	if what != "" {
		return closed(key, code, what)
	}
	if out.UDP && len(clusters) > 1 {
		return closed(key, model.Quarantined, "is of mode udp, and its upstreams have different settings: only their weights may differ,")
	}
	out.Clusters = clusters
	return out, Unverified(route)
}

// addRanges adds the addresses of a filter. It returns false if one of the filter's lists cannot be read.
func addRanges(to *ir.L4Service, named map[model.Key]model.Object, access *model.IPAccessFilter) bool {
	allow, knowsAllow := listedRanges(named, access.AllowLists)
	deny, knowsDeny := listedRanges(named, access.DenyLists)
	if !knowsAllow || !knowsDeny {
		return false
	}
	to.Deny = seam.Ranges(slices.Concat(to.Deny, deny), access.Deny)
	if access.Allow != nil || access.AllowLists != nil {
		to.Allow = append(to.Allow, seam.Ranges(allow, access.Allow))
	}
	return true
}

// L4 is what the services of a proxy with a mode other than http become.
type L4 struct {
	// Listeners are sorted by port, first those of TCP.
	Listeners []*ir.L4Listener
	// Passthrough are the services on the HTTPS port, sorted by name.
	Passthrough []*ir.L4Service
	// Conditions say which services are not served, since an older one has what they want.
	Conditions []model.Condition
}

// L4Of decides which of the services of a proxy have the ports that they want: the oldest. Names of services on the
// HTTPS port are not compared here.
func L4Of(t *model.ProxyTree, s Settings, trees []*model.ServiceTree, services map[string]*ir.L4Service) (out L4) {
	type place struct {
		transport string
		port      int
	}
	trees = slices.SortedFunc(slices.Values(trees), func(a, b *model.ServiceTree) int {
		return cmp.Or(cmp.Compare(a.Service.ID, b.Service.ID), cmp.Compare(a.Service.Name, b.Service.Name))
	})
	ports := map[place]*ir.L4Listener{}
	first := map[place]*model.Service{}
	names := map[string]*model.Service{}
	for _, tree := range trees {
		svc := tree.Service
		compiled := services[svc.Name]
		port, transport, own := t.Proxy.Port(svc)
		at := place{transport, port}
		name := strconv.Itoa(port) + " " + Domain(svc)
		why := t.Proxy.PortRefusal(svc)
		for _, other := range []*model.Service{first[at], names[name]} {
			if why == "" && own && other != nil {
				why = t.Proxy.Clash(svc, other)
			}
		}
		if why == "" && own && first[at] == nil && len(ports) >= model.MaxL4Ports {
			why = fmt.Sprintf("wants another port, and %d is the most that a proxy has", model.MaxL4Ports)
		}
		if compiled.TLS != nil {
			whole := *compiled
			whole.TLS = &ir.L4TLS{MinVersion: t.Proxy.TLSMinVersion, Pairs: compiled.TLS.Pairs, ClientCA: compiled.TLS.ClientCA}
			compiled = &whole
		}
		switch {
		case why != "":
			out.Conditions = append(out.Conditions, model.Condition{
				Key: model.ProxyServiceKey(t.Proxy.Name, svc.Name), Code: model.HostConflict,
				Message: fmt.Sprintf("service %q %s: it is not served", svc.Name, why),
			})
			continue
		case !own:
			out.Passthrough = append(out.Passthrough, compiled)
			continue
		case first[at] == nil:
			first[at] = svc
			ports[at] = l4Listener(t, s, port, transport == model.ModeUDP)
		}
		if svc.Mode == model.ModeTLS {
			names[name] = svc
		}
		ports[at].Services = append(ports[at].Services, compiled)
	}
	byName := func(a, b *ir.L4Service) int { return strings.Compare(a.Name, b.Name) }
	for _, l := range ports {
		if l.UDP && len(l.Services[0].Clusters) == 0 {
			continue // nothing answers
		}
		slices.SortFunc(l.Services, byName)
		out.Listeners = append(out.Listeners, l)
	}
	slices.SortFunc(out.Passthrough, byName)
	slices.SortFunc(out.Listeners, func(a, b *ir.L4Listener) int {
		if a.UDP != b.UDP {
			return map[bool]int{false: -1, true: 1}[a.UDP]
		}
		return cmp.Compare(a.Port, b.Port)
	})
	return out
}

// l4Listener is a listener without services, with what all listeners of a proxy have.
func l4Listener(t *model.ProxyTree, s Settings, port int, udp bool) *ir.L4Listener {
	l := Listener(t, s, ir.Needs{})
	return &ir.L4Listener{
		Address: l.Address, Port: port, UDP: udp, AccessLog: l.AccessLog, AccessLogs: l.AccessLogs, Lean: l.Lean,
		ProxyProtocol: l.ProxyProtocol, Clients: l.Clients,
	}
}
