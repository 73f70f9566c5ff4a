package explain_test

import (
	"encoding/base64"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/affinity"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/mirror"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

// test/policies shows that Envoy does the same.
var _ = Describe("A cookie", func() {
	pair := endpointOf("pair")
	pair.Endpoints = append(pair.Endpoints, ir.Endpoint{Address: "192.0.2.2", Port: 80, Weight: 3, Upstream: "other"})

	DescribeTable("names an endpoint of the route, or none", func(cookie string, first, second float64) {
		r := &ir.Route{Forward: &ir.Forward{
			Clusters: []ir.WeightedCluster{{Cluster: pair, Share: 1}},
			Filters:  ir.Filters{"affinity": &affinity.Affinity{Cookie: "node", Exact: true}},
		}}
		endpoints := ask(forwardingState(&ir.Host{}, r, pair), "http://shop.test/", "cookie: "+cookie).Forward.Clusters[0].Endpoints
		Expect([]float64{endpoints[0].Percent, endpoints[1].Percent}).To(Equal([]float64{first, second}))
	},
		Entry("none", "a=b", 25.0, 75.0),
		Entry("the first", "a=b; node="+encoded("192.0.2.1:80"), 100.0, 0.0),
		Entry("the second", "node="+encoded("192.0.2.2:80"), 0.0, 100.0),
		Entry("an unknown endpoint", "node="+encoded("192.0.2.3:80"), 25.0, 75.0),
		Entry("another port", "node="+encoded("192.0.2.1:81"), 25.0, 75.0),
	)

	It("keeps a client at an endpoint, and a mirror gets copies", func() {
		blue := endpointOf("blue")
		r := &ir.Route{Forward: &ir.Forward{
			Clusters: []ir.WeightedCluster{{Cluster: blue, Share: 1}},
			Filters: ir.Filters{
				"affinity": &affinity.Affinity{Cookie: "node"}, "mirror": []mirror.Mirror{{Cluster: "blue", Millionths: 5000}},
			},
		}}
		a := ask(forwardingState(&ir.Host{}, r, blue), "http://shop.test/")
		var said []string
		for _, s := range a.Steps {
			if s.Code == "forward" {
				said = append(said, s.Message)
			}
		}
		Expect(said).To(Equal([]string{
			"it goes to blue as GET / with Host shop.test", "requests with the same cookie node go to the same endpoint",
			"a copy of 0.5% of the requests goes to blue, whose answers are discarded",
		}))
		Expect(a.Code).To(Equal(explain.Forwarded))
	})
})

func encoded(address string) string {
	return base64.StdEncoding.EncodeToString(fmt.Append(nil, address))
}
