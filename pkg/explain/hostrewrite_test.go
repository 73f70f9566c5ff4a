package explain_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
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
		host.Headers = &ir.Headers{Request: []ir.HeaderChange{{Action: ir.HeaderSet, Name: "x-tenant", Value: "100%"}}}
		Expect(seen()).To(Equal("100%"))
		r.Headers = &ir.Headers{Request: []ir.HeaderChange{{Action: ir.HeaderRemove, Name: "x-tenant"}}}
		Expect(seen()).To(Equal("shop.test"))
	})

	DescribeTable("uses the value of a template", func(template, want string, before ...ir.HeaderChange) {
		blue := endpointOf("blue")
		r := &ir.Route{Forward: &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: blue, Share: 1}}, HostRewrite: &ir.HostRewrite{Header: "x-tenant"}}}
		host := &ir.Host{Headers: &ir.Headers{Request: append(before, ir.HeaderChange{Action: ir.HeaderSet, Name: "x-tenant", Value: template, Template: true})}}
		a := ask(forwardingState(host, r, blue), "http://shop.test/", "x-tenant: client", "x-a: alice", "x-a: bob", "x-empty: ")
		Expect(a.Forward.Host).To(Equal(want))
	},
		Entry("of a header, the first", "%REQ(X-A):1024%.test", "alice.test"),
		Entry("of a header, cut", "%REQ(x-a):2%", "al"),
		Entry("of the header that stands in", "%REQ(x-b?x-a):1024%", "alice"),
		Entry("not of one that stands in for an empty one", "a%REQ(x-empty?x-a):1024%", "a"),
		Entry("of a header that changed before", "%REQ(x-a):1024%", "carol", ir.HeaderChange{Action: ir.HeaderSet, Name: "x-a", Value: "carol"}),
		Entry("of a header that was added to", "%REQ(x-b):1024%", "b", ir.HeaderChange{Action: ir.HeaderAdd, Name: "x-b", Value: "b"}, ir.HeaderChange{Action: ir.HeaderAdd, Name: "x-b", Value: "c"}),
		Entry("none, so the client's stays", "%REQ(x-b):1024%", "client"),
		Entry("none, after a removal", "%REQ(x-b):1024%", "shop.test", ir.HeaderChange{Action: ir.HeaderRemove, Name: "x-tenant"}),
		Entry("of the client's address", "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%.test", "127.0.0.1.test"),
		Entry("with a percent sign", "%%REQ(x-a)%%", "%REQ(x-a)%"),
		Entry("that only Envoy knows", "%PROTOCOL%.test", "%PROTOCOL%.test"),
	)
})
