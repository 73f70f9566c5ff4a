package compile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// This file is about types of global configs of which one applies to a proxy: the first by name.

// first returns what the first global config of a type says, and whether there is one. spec is nil if it cannot be read.
func first[T model.Spec](t *model.ProxyTree, of string) (spec T, found bool) {
	for _, g := range t.GlobalConfigs {
		if g.Type == of {
			if g.Fault == nil {
				spec, _ = g.Spec.(T)
			}
			return spec, true
		}
	}
	return spec, false
}

// NotFirst says which global configs of a proxy have no effect because another one of their type has, or because they
// cannot be read.
func NotFirst(t *model.ProxyTree) (conditions []model.Condition) {
	by := map[string]string{}
	one := []string{model.GlobalConfigRefusals, model.GlobalConfigProxyProtocol, model.GlobalConfigConnections, model.GlobalConfigGeoIP, model.GlobalConfigMetrics,
		model.GlobalConfigACME}
	for _, g := range t.GlobalConfigs {
		if !slices.Contains(one, g.Type) {
			continue
		}
		var err error
		switch {
		case by[g.Type] != "":
			err = fmt.Errorf("proxy %s has the %s of globalconfig %s, and not this one", t.Proxy.Name, g.Type, by[g.Type])
		case g.Fault != nil:
			err = unreadable(g)
		}
		if by[g.Type] == "" {
			by[g.Type] = g.Name
		}
		if err != nil {
			conditions = append(conditions, model.Condition{Key: g.Key(), Code: model.Quarantined, Message: err.Error()})
		}
	}
	return conditions
}

// addRefusalPage sets the page for browsers whose requests a proxy refuses.
func addRefusalPage(l *ir.Listener, t *model.ProxyTree, _ Settings, _ ir.Needs) {
	if c, _ := first[*model.RefusalsConfig](t, model.GlobalConfigRefusals); c != nil {
		l.RefusalPage = c.HTML
	}
}

// addProxyProtocol sets who may say whose connection it is. If that cannot be read, nobody may connect.
func addProxyProtocol(l *ir.Listener, t *model.ProxyTree, _ Settings, _ ir.Needs) {
	c, found := first[*model.ProxyProtocolConfig](t, model.GlobalConfigProxyProtocol)
	if !found {
		return
	}
	l.ProxyProtocol = &ir.ProxyProtocol{}
	if c != nil {
		l.ProxyProtocol.From = seam.Ranges(nil, c.From)
		for _, t := range c.TLVs {
			l.ProxyProtocol.TLVs = append(l.ProxyProtocol.TLVs, ir.TLV(t))
		}
	}
}

// addLocationHeaders sets in which headers backends are told where clients are.
func addLocationHeaders(l *ir.Listener, t *model.ProxyTree, _ Settings, _ ir.Needs) {
	if c, _ := first[*model.GeoIPConfig](t, model.GlobalConfigGeoIP); c != nil {
		l.LocationHeaders = ir.LocationHeaders{Country: strings.ToLower(c.CountryHeader), ASN: strings.ToLower(c.ASNHeader)}
	}
}

// addMetrics sets what is counted of requests.
func addMetrics(l *ir.Listener, t *model.ProxyTree, _ Settings, _ ir.Needs) {
	if c, _ := first[*model.MetricsConfig](t, model.GlobalConfigMetrics); c != nil {
		l.Metrics = &ir.Metrics{Routes: c.Routes, Bytes: c.Bytes, Retries: c.Retries, MaxSeries: c.Series()}
	}
}

// HasMetrics reports whether a proxy counts the requests of its services.
func HasMetrics(t *model.ProxyTree) bool {
	c, _ := first[*model.MetricsConfig](t, model.GlobalConfigMetrics)
	return c != nil
}

// addConnections sets what the connections of clients may cost. If that cannot be read, the defaults hold.
func addConnections(l *ir.Listener, t *model.ProxyTree, s Settings, _ ir.Needs) {
	c, _ := first[*model.ConnectionsConfig](t, model.GlobalConfigConnections)
	if c == nil {
		return
	}
	l.Clients = &ir.Clients{
		MaxConnections: c.MaxConnections, MaxRequests: c.MaxRequests, MaxStreams: c.MaxStreams,
		HeadersKiB: c.HeadersKiB, Headers: c.Headers,
		MaxAge: time.Duration(c.MaxAge), IdleTimeout: time.Duration(c.IdleTimeout), DrainTimeout: time.Duration(c.DrainTimeout),
		Keepalive: time.Duration(c.Keepalive), HeadersTimeout: time.Duration(c.HeadersTimeout),
		RequestTimeout: time.Duration(c.RequestTimeout), StreamIdleTimeout: time.Duration(c.StreamIdleTimeout),
		SlowReaderTimeout: time.Duration(c.SlowReaderTimeout),
	}
	if c.Limit != nil && s.RateLimits() {
		l.Clients.NewPerClient = &ir.NewPerClient{
			Domain: limits.StatedDomain(nil).Wire(), Entry: rateLimitEntry(c.Limit.Descriptors[0][0]),
		}
	}
}
