package explain_test

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/cors"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/ipaccess"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/maintenance"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

var _ = DescribeTable("A filter's answer", func(f ir.Filters, status int, body, step string, lines ...string) {
	blue := endpointOf("blue")
	r := &ir.Route{Filters: f, Forward: &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: blue, Share: 1}}}}
	request, errs := explain.NewRequest("OPTIONS", "http://h/", lines)
	Expect(errs).To(BeEmpty())
	request.Client = netip.MustParseAddr("192.0.2.7")
	a := must(explain.Explain(forwardingState(&ir.Host{Filters: f}, r, blue), request))
	Expect(a.Status).To(Equal(status))
	Expect(a.Body).To(Equal(body))
	Expect(a.Steps).NotTo(BeEmpty())
	Expect(a.Steps[len(a.Steps)-1]).To(Equal(explain.Step{Code: step, Message: a.Message}))
},
	Entry("is the reply of the listener to its details",
		ir.Filters{"ipAccess": &ipaccess.Access{Deny: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}},
		403, "requests from this address are not allowed here\n", "refused"),
	Entry("is its own without details", ir.Filters{"maintenance": &maintenance.Response{Status: 410, Body: "gone\n"}},
		410, "gone\n", "refused"),
	Entry("is a step of its own", ir.Filters{"cors": &cors.Policy{Origins: []string{"https://a.test"}}},
		200, "", "answer", "Origin: https://a.test", "Access-Control-Request-Method: GET"),
)
