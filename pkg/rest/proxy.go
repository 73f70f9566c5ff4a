package rest

import "github.com/gatehouse-gateway/gatehouse/pkg/model"

func (s *server) addProxy() {
	addObjects(s, kind[*model.Proxy]{
		kind: model.KindProxy, base: "/proxy",
		fields: proxyFields(),
		make:   func(_ names, sent []value) *model.Proxy { return s.newProxy(textOf(sent, "Name")) },
		at:     proxyAt,
		created: func(p *model.Proxy) any {
			return struct {
				Name string `json:"name"`
			}{p.Name}
		},
	})
}

func proxyFields() []field[*model.Proxy] {
	return []field[*model.Proxy]{
		need(text("Name", func(o *model.Proxy) *string { return &o.Name })),
		integer("Http_port", func(o *model.Proxy) *int { return &o.HTTPPort }),
		integer("Https_port", func(o *model.Proxy) *int { return &o.HTTPSPort }),
		text("Listen_ip", func(o *model.Proxy) *string { return &o.ListenIP }),
	}
}

func proxyAt(n names) []model.Key { return []model.Key{model.ProxyKey(n[model.KindProxy])} }
