package explain_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/headers"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// forwardingState is an Envoy with one host, whose route forwards to blue, and the clusters.
func forwardingState(host *ir.Host, r *ir.Route, clusters ...*ir.Cluster) explain.State {
	GinkgoHelper()
	host.Name, host.Domain = "shop", "*"
	r.Name, r.Match = "root", ir.Match{Path: "/", PathKind: "prefix"}
	have := state(must(snapshot.NewHost(must(translate.VirtualHost(host)), []*snapshot.Route{must(snapshot.NewRoute(must(translate.Route(r))))}, snapshot.ObjectRef{})))
	for _, c := range clusters {
		have.Clusters = append(have.Clusters, must(snapshot.NewCluster(must(translate.Cluster(c)))))
	}
	return have
}

func endpointOf(name string) *ir.Cluster {
	return &ir.Cluster{Name: name, Connections: ir.Connections{ConnectTimeout: time.Second}, Endpoints: []ir.Endpoint{{Address: "192.0.2.1", Port: 80, Weight: 1, Upstream: name}}}
}

// test/policies shows that Envoy does the same.
var _ = Describe("A rewrite of the host", func() {
	It("uses the headers as the service and the route changed them", func() {
		blue := endpointOf("blue")
		r := &ir.Route{Forward: &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: blue, Share: 1}}, HostRewrite: &ir.HostRewrite{Header: "x-tenant"}}}
		host := &ir.Host{}
		seen := func() string {
			GinkgoHelper()
			return ask(forwardingState(host, r, blue), "http://shop.test/", "x-tenant: client").Forward.Host
		}
		Expect(seen()).To(Equal("client"))
		host.Filters = ir.Filters{"headers": &headers.Changes{Request: []ir.HeaderChange{{Action: ir.HeaderSet, Name: "x-tenant", Value: "100%"}}}}
		Expect(seen()).To(Equal("100%"))
		r.Filters = ir.Filters{"headers": &headers.Changes{Request: []ir.HeaderChange{{Action: ir.HeaderRemove, Name: "x-tenant"}}}}
		Expect(seen()).To(Equal("shop.test"))
	})
})
