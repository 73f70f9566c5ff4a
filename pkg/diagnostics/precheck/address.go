package precheck

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// mostProxies bounds the search for an upstream's port among listeners. mostUpstreams
// bounds the search for a listener's port among upstreams.
const (
	mostProxies   = 1000
	mostUpstreams = 1000
)

// ownAddresses caches where the gateway listens.
type ownAddresses struct {
	read bool
	list []egress.OwnAddress
}

// address refuses, with a path, an upstream that the lists rule out. It also refuses one
// that leads to the gateway's own API while that needs no token: with a rewritten Host,
// every client of the gateway could change the configuration.
func (c checker) address(path string, u *model.Upstream) error {
	if why := c.rules.Upstreams.Refusal(u.IP); why != "" {
		return &model.Error{Kind: model.Unworkable, Path: path, Message: path + " cannot be used: " + why}
	}
	place, err := c.place(u)
	if err != nil || place == nil || c.rules.Open == nil {
		return err
	}
	open, err := c.rules.Open()
	if err != nil || !open {
		return err
	}
	return &model.Error{
		Kind: model.Unworkable, Path: path,
		Message: path + " " + placeText(u, place) +
			", and the API needs no token: clients of the gateway could reach it as this machine does",
		Hint: "create a token first (gatehouse token create), or name the address of the backend itself",
	}
}

const circle = ": requests may loop, or reach what only this machine should reach"

func placeText(u *model.Upstream, place *egress.OwnAddress) string {
	return fmt.Sprintf("leads to %s, at %s", place.What, net.JoinHostPort(u.IP, strconv.Itoa(u.Port)))
}

// place returns the part of the gateway to which an upstream leads; nil means none.
func (c checker) place(u *model.Upstream) (*egress.OwnAddress, error) {
	if len(c.rules.OwnAddresses) == 0 || !c.rules.Machine.Local(u.IP) {
		return nil, nil
	}
	if !c.own.read {
		proxies, err := store.List[*model.Proxy](c.reader, store.Query{Kind: model.KindProxy, Limit: mostProxies})
		if err != nil {
			return nil, err
		}
		c.own.read, c.own.list = true, append(c.own.list, c.rules.OwnAddresses...)
		for _, p := range proxies {
			c.own.list = append(c.own.list, Listeners(p)...)
		}
	}
	return c.rules.Machine.Find(c.own.list, u.IP, u.Port), nil
}

// Listeners returns where the Envoys of a proxy listen. They may run on another machine,
// but then an upstream with a loopback address is on that machine too.
func Listeners(p *model.Proxy) []egress.OwnAddress {
	addr, err := netip.ParseAddr(p.ListenIP)
	if err != nil {
		return nil
	}
	what := "the listener of proxy " + p.Name
	return []egress.OwnAddress{
		{What: what, Addr: netip.AddrPortFrom(addr, uint16(p.HTTPPort))},  //nolint:gosec // a port
		{What: what, Addr: netip.AddrPortFrom(addr, uint16(p.HTTPSPort))}, //nolint:gosec // a port
	}
}

// addressWarnings warns of written upstreams that lead to the gateway itself or accept
// every certificate, and of names that may resolve to a denied address.
func (rules Rules) addressWarnings(r store.Reader, written store.Changes) ([]string, error) {
	c := checker{reader: r, rules: rules, own: &ownAddresses{}}
	var list []string
	for w, err := range written(model.KindProxy, model.KindUpstream, model.KindFilter, model.KindGlobalConfig) {
		if err != nil {
			return nil, err
		}
		if len(list) > maxAttachments {
			break
		}
		if p, ok := w.After.(*model.Proxy); ok {
			met, err := c.warnUpstreams(p, w.Before)
			if err != nil {
				return nil, err
			}
			list = append(list, met...)
		}
		u, ok := w.After.(*model.Upstream)
		if !ok {
			u = providerOf(w.After)
		}
		if u == nil {
			continue
		}
		place, err := c.place(u)
		if err != nil {
			return nil, err
		}
		if place != nil {
			list = append(list, w.Key.Path()+" "+placeText(u, place)+circle)
		}
		if u.IsUnverified() {
			list = append(list, w.Key.Path()+": "+model.UnverifiedMessage)
		}
		if rules.Upstreams.MayResolveToDenied(u.IP) {
			list = append(list, w.Key.Path()+" has a DNS name, which only Envoy resolves: "+
				"--upstream-deny does not apply to the addresses behind it")
		}
	}
	return list, nil
}

// warnUpstreams warns of upstreams with an address where a proxy now starts to listen.
func (c checker) warnUpstreams(p *model.Proxy, before model.Object) ([]string, error) {
	was, _ := before.(*model.Proxy)
	if len(c.rules.OwnAddresses) == 0 || was != nil && slices.Equal(Listeners(was), Listeners(p)) {
		return nil, nil
	}
	upstreams, err := store.List[*model.Upstream](c.reader, store.Query{Kind: model.KindUpstream, Limit: mostUpstreams})
	var list []string
	for _, u := range upstreams {
		if place := c.rules.Machine.Find(Listeners(p), u.IP, u.Port); place != nil {
			list = append(list, u.Key().Path()+" "+placeText(u, place)+circle)
		}
	}
	return list, err
}
