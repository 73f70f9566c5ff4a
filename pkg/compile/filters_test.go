package compile_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

var _ = Describe("A filter whose configuration is of another type", func() {
	filter := &model.ParsedFilter{
		Filter: &model.Filter{Name: "each", Type: "route_filter_headers"}, Spec: &model.RateLimitFilter{},
	}
	service := &model.Service{Name: "shop", FQDN: "shop.example.com"}

	It("closes its route", func() {
		r, condition := compile.Route(&model.RouteTree{
			Route: &model.Route{Service: "shop", Name: "root", Prefix: "/"}, Filters: []*model.ParsedFilter{filter},
		}, compile.Settings{})
		Expect(r.Respond.Status).To(Equal(503))
		Expect(condition.Message).To(Equal("the route has filter each, whose configuration is not that of a route_filter_headers, and answers 503"))
	})

	It("closes its service, and adds nothing to it", func() {
		tree := &model.ServiceTree{Service: service, Filters: []*model.ParsedFilter{filter}}
		Expect(compile.ClosedHost(tree)).To(Equal(&model.Condition{
			Key: model.ServiceFilterKey("shop", "each"), Code: "Quarantined",
			Message: "the service has filter each, whose configuration is not that of a route_filter_headers, and answers 503",
		}))
		host, cannot := compile.Host(tree, nil, compile.Settings{}, nil)
		Expect(cannot).To(BeNil())
		Expect(host.Headers).To(BeNil())
	})
})
