package explain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// test/explain shows that Envoy does the same.
var _ = Describe("A path template", func() {
	asked := func(template, rewrite, target string) explain.Answer {
		GinkgoHelper()
		blue := endpointOf("blue")
		r := &ir.Route{
			Name: "root", Match: ir.Match{Path: template, PathKind: ir.PathTemplate},
			Forward: &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: blue, Share: 1}}, Rewrite: ir.Rewrite{Template: rewrite}},
		}
		host := &ir.Host{Name: "shop", Domain: "*"}
		have := state(must(snapshot.NewHost(must(translate.VirtualHost(host)), []*snapshot.Route{must(snapshot.NewRoute(must(translate.Route(r))))}, snapshot.ObjectRef{})))
		have.Clusters = []*snapshot.Resource{must(snapshot.NewCluster(must(translate.Cluster(blue))))}
		return ask(have, "http://shop.test"+target)
	}

	It("matches requests", func() {
		a := asked("/users/{id}", "", "/users/7?a=b")
		Expect(a.Routes).To(Equal([]explain.Route{{Route: "root", Matches: true, Checks: []explain.Check{
			{Code: "path_template", Holds: true, Message: `path "/users/7" matches the template "/users/{id}"`},
		}}}))
		Expect(a.Forward.Path).To(Equal("/users/7?a=b"))
	})

	It("reports why it does not match", func() {
		a := asked("/users/{id}", "", "/users/7/cart")
		Expect(a.Code).To(Equal(explain.NoRoute))
		Expect(a.Routes[0].Checks).To(Equal([]explain.Check{{Code: "path_template", Message: `path "/users/7/cart" does not match the template "/users/{id}"`}}))
	})

	It("passes its variables to the path that the upstream receives", func() {
		Expect(asked("/users/{id}/{rest=**}", "/{rest}/of/{id}", "/users/{7}/a/b?c=d").Forward.Path).To(Equal("/a/b/of/%7B7%7D?c=d"))
	})
})
