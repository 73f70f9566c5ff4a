package rest

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) addUpstream() {
	addObjects(s, kind[*model.Upstream]{
		kind: model.KindUpstream, base: "/upstream",
		fields: upstreamFields(),
		make:   func(names, []value) *model.Upstream { return model.NewUpstream() },
		at:     upstreamAt,
	})
	s.addLinked(linked{
		path: "/upstream/:upstream/route",
		kind: model.KindRoute, link: model.KindRouteUpstream,
		from:  upstreamAt,
		links: func(n names) store.Query { return store.Query{Upstream: n[model.KindUpstream]} },
		target: func(o model.Object) model.Key {
			l := o.(*model.RouteUpstream)
			return model.RouteKey(l.Service, l.Route)
		},
	})
}

func upstreamFields() []field[*model.Upstream] {
	type u = *model.Upstream
	return []field[u]{
		need(text("Upstream_name", func(o u) *string { return &o.Name })),
		need(text("Upstream_ip", func(o u) *string { return &o.IP })),
		need(integer("Upstream_port", func(o u) *int { return &o.Port })),
		integer("Upstream_weight", func(o u) *int { return &o.Weight }),
		text("Upstream_hc_path", func(o u) *string { return &o.HCPath }),
		text("Upstream_hc_host", func(o u) *string { return &o.HCHost }),
		integer("Upstream_hc_intervalseconds", func(o u) *int { return &o.HCIntervalSeconds }),
		integer("Upstream_hc_timeoutseconds", func(o u) *int { return &o.HCTimeoutSeconds }),
		integer("Upstream_hc_unhealthythresholdcount", func(o u) *int { return &o.HCUnhealthyThresholdCount }),
		integer("Upstream_hc_healthythresholdcount", func(o u) *int { return &o.HCHealthyThresholdCount }),
		text("Upstream_strategy", func(o u) *string { return &o.Strategy }),
		text("Upstream_protocol", func(o u) *string { return &o.Protocol }),
		text("Upstream_validation_cacertificate", func(o u) *string { return &o.ValidationCACertificate }),
		text("Upstream_validation_subjectname", func(o u) *string { return &o.ValidationSubjectName }),
	}
}

func upstreamAt(n names) []model.Key {
	return []model.Key{model.UpstreamKey(n[model.KindUpstream])}
}
