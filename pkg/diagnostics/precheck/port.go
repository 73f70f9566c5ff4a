package precheck

import (
	"fmt"
	"net/netip"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// checkPort refuses a service with a port where the program itself listens: whichever starts first would keep it from the
// other.
func (c checker) checkPort(w store.Written) error {
	if len(c.rules.OwnAddresses) == 0 {
		return nil
	}
	switch o := w.After.(type) {
	case *model.ProxyService:
		svc, found, err := find[*model.Service](c.reader, model.ServiceKey(o.Service))
		if err != nil || !found || !svc.IsL4() {
			return err
		}
		return c.checkPortOn(o.Proxy, svc)
	case *model.Service:
		was, _ := w.Before.(*model.Service)
		if was == nil || !o.IsL4() || was.Port == o.Port && was.Mode == o.Mode {
			return nil
		}
		links, err := store.List[*model.ProxyService](c.reader, store.Query{Kind: model.KindProxyService, To: []model.Key{o.Key()}})
		if err != nil {
			return err
		}
		for _, l := range links {
			if err := c.checkPortOn(l.Proxy, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c checker) checkPortOn(proxy string, svc *model.Service) error {
	p, found, err := find[*model.Proxy](c.reader, model.ProxyKey(proxy))
	if err != nil || !found {
		return err
	}
	port, transport, own := p.Port(svc)
	at, err := netip.ParseAddr(p.ListenIP)
	if !own || transport != model.ModeTCP || err != nil {
		return nil
	}
	for _, a := range c.rules.OwnAddresses {
		if int(a.Addr.Port()) == port && (at.IsUnspecified() || a.Addr.Addr().IsUnspecified() || at == a.Addr.Addr()) {
			return &model.Error{
				Kind: model.Unworkable, Path: model.ProxyServiceKey(proxy, svc.Name).Path(), Hint: "choose another port",
				Message: fmt.Sprintf("proxy %q cannot serve service %q, which wants port %d, where %s is", proxy, svc.Name, port, a.What),
				Fields:  []model.FieldError{{Field: "Port", Message: "is that of " + a.What}},
			}
		}
	}
	return nil
}
