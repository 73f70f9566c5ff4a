package explain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("The filter that changes headers", func() {
	It("reports what it changes, for the service and for the route", func() {
		vh := must(translate.VirtualHost(&ir.Host{Name: "shop", Domain: "*", Headers: &ir.Headers{
			Request:  []ir.HeaderChange{{Action: ir.HeaderRemove, Name: "x-debug"}, {Action: ir.HeaderSet, Name: "x-team", Value: "shop"}},
			Response: []ir.HeaderChange{{Action: ir.HeaderRemove, Name: "x-powered-by"}},
		}}))
		r := must(snapshot.NewRoute(must(translate.Route(&ir.Route{
			Name: "root", Match: ir.Match{Path: "/", PathKind: "prefix"}, Respond: &ir.Respond{Status: 503},
			Headers: &ir.Headers{Request: []ir.HeaderChange{{Action: ir.HeaderAdd, Name: "x-team", Value: "cart"}}},
		}))))
		a := ask(state(must(snapshot.NewHost(vh, []*snapshot.Route{r}, snapshot.ObjectRef{}))), "http://h/")
		Expect(a.Filters).To(Equal([]explain.Filter{
			{Name: "envoy.filters.http.header_mutation", Message: "changes headers: of the request removes x-debug, sets x-team, adds x-team; of the answer removes x-powered-by"},
			{Name: "envoy.filters.http.router", Message: "forwards the request, or answers as the route says"},
		}))
	})
})
