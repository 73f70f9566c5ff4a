package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

// BenchmarkApply moves one route between two upstreams, among more and more
// services. It joins the route configuration of all hosts each time, like a
// stream.
func BenchmarkApply(b *testing.B) {
	for _, services := range []int{10, 1_000, 3_000, 10_000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			build, err := pipeline.NewBuild(compile.Settings{})
			if err != nil {
				b.Fatal(err)
			}
			build.Apply(manyServices(services))
			for i := range b.N {
				l := &model.RouteUpstream{Service: "s7", Route: "root", Upstream: "extra"}
				e := model.Entry{Key: l.Key(), Object: l}
				if i%2 == 1 {
					e.Object = nil
				}
				s := build.Apply(model.Change{Revision: int64(i + 2), Entries: []model.Entry{e}}).Snapshots["gw"]
				s.Routes(s.Hosts)
			}
		})
	}
}

// BenchmarkFilterOfProxy changes a filter that is on the proxy of so many services, or one route there.
func BenchmarkFilterOfProxy(b *testing.B) {
	filter := func(config string) model.Entry {
		f := &model.Filter{Name: "wide", Type: model.FilterIPAccess, Config: model.JSON(config)}
		return model.Entry{Key: f.Key(), Object: f}
	}
	on := &model.ProxyFilter{Proxy: "gw", Filter: "wide"}
	extra := &model.RouteUpstream{Service: "s7", Route: "root", Upstream: "extra"}
	for _, services := range []int{1_000, 10_000} {
		for _, what := range []string{"filter", "route"} {
			b.Run(fmt.Sprintf("%d/%s", services, what), func(b *testing.B) {
				build, err := pipeline.NewBuild(compile.Settings{})
				if err != nil {
					b.Fatal(err)
				}
				all := manyServices(services)
				all.Entries = append(all.Entries, filter(`{"deny":["192.0.2.1"]}`), model.Entry{Key: on.Key(), Object: on})
				build.Apply(all)
				for i := range b.N {
					e := filter(fmt.Sprintf(`{"deny":["192.0.2.%d"]}`, i%200+1))
					if what == "route" {
						if e = (model.Entry{Key: extra.Key(), Object: extra}); i%2 == 1 {
							e.Object = nil
						}
					}
					s := build.Apply(model.Change{Revision: int64(i + 2), Entries: []model.Entry{e}}).Snapshots["gw"]
					s.Routes(s.Hosts)
				}
			})
		}
	}
}

func manyServices(n int) model.Change {
	c := model.Change{Revision: 1, Full: true}
	add := func(o model.Object) {
		*o.Meta().ID = int64(len(c.Entries) + 1)
		c.Entries = append(c.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	upstream := func(name string) {
		u := model.NewUpstream()
		u.Name, u.IP, u.Port = name, "192.0.2.1", 80
		add(u)
	}
	upstream("extra")
	add(proxyNamed("gw"))
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		upstream(name)
		add(&model.Service{Name: name, FQDN: name + ".test"})
		add(&model.Route{Service: name, Name: "root", Prefix: "/"})
		add(&model.RouteUpstream{Service: name, Route: "root", Upstream: name})
		add(&model.ProxyService{Proxy: "gw", Service: name})
	}
	return c
}
