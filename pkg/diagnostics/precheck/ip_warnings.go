package precheck

import (
	"fmt"
	"net/netip"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// ipWarnings returns the filters' own warnings, such as lists of addresses in a misleading
// notation, and warns where clients can choose the compared address.
func ipWarnings(r store.Reader, written store.Changes) ([]string, error) {
	w := warner{checker: checker{reader: r}, attachments: map[model.Key]bool{}}
	var list []string
	for c, err := range written(model.KindFilter, model.KindList, model.KindRouteFilter, model.KindServiceFilter, model.KindProxyFilter, model.KindProxy,
		model.KindProxyService) {
		if err != nil {
			return nil, err
		}
		switch o := c.After.(type) {
		case *model.Filter:
			spec := o.Parse().Spec
			list = append(list, adviceOf(c.Key, spec)...)
			if _, ok := spec.(*model.IPAccessFilter); ok {
				err = w.addLinks([]model.Key{c.Key}, true)
			}
		case *model.List:
			list = append(list, adviceOf(c.Key, o.Parse().Spec)...)
		case *model.RouteFilter, *model.ServiceFilter, *model.ProxyFilter:
			w.attachments[c.Key] = true
		case *model.Proxy:
			if was, _ := c.Before.(*model.Proxy); was != nil && trustsClients(o) && !trustsClients(was) {
				err = w.addLinks(nil, true)
			}
		case *model.ProxyService:
			var p *model.Proxy
			if p, _, err = find[*model.Proxy](r, model.ProxyKey(o.Proxy)); p != nil && trustsClients(p) {
				err = w.addLinks(nil, true)
			}
		}
		if err != nil || len(w.attachments) > maxAttachments {
			return list, err
		}
	}
	for _, link := range sortedKeys(w.attachments) {
		trusting, err := w.trustingProxies(link)
		if err != nil {
			return nil, err
		}
		for _, p := range trusting {
			list = append(list, fmt.Sprintf("%s compares the address in X-Forwarded-For, "+
				"because proxy %s has Trusted_hops %d and listens on %s: "+
				"a client that reaches that port directly chooses its address; let only the proxies in front reach it", link.Path(),
				p.Name, p.TrustedHops, p.ListenIP))
		}
	}
	return list, nil
}

// trustsClients reports whether every client may set its own address.
func trustsClients(p *model.Proxy) bool {
	a, err := netip.ParseAddr(p.ListenIP)
	return p.TrustedHops > 0 && err == nil && !a.IsLoopback() && !a.IsPrivate()
}

// trustingProxies returns the proxies that serve a link to a vh_filter_ipaccess and trust clients.
func (w warner) trustingProxies(link model.Key) ([]*model.Proxy, error) {
	f, found, err := find[*model.Filter](w.reader, link.Attached())
	if !found || f.TypeName() != model.FilterIPAccess {
		return nil, err
	}
	proxies, err := w.proxiesOf(link, maxAttachments)
	var list []*model.Proxy
	for _, name := range proxies {
		p, found, err := find[*model.Proxy](w.reader, model.ProxyKey(name))
		if err != nil {
			return nil, err
		}
		if found && trustsClients(p) {
			list = append(list, p)
		}
	}
	return list, err
}

// adviceOf returns a configuration's own warnings.
func adviceOf(of model.Key, spec model.Spec) (list []string) {
	if s, ok := spec.(interface{ Advice() []string }); ok {
		for _, text := range s.Advice() {
			list = append(list, of.Path()+" "+text)
		}
	}
	return list
}
