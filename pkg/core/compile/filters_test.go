package compile_test

import (
	"encoding/base64"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A filter whose configuration is of another type", func() {
	filter := &model.ParsedFilter{
		Filter: &model.Filter{Name: "each", Type: "route_filter_headers"}, Type: "route_filter_headers", Spec: &model.RateLimitFilter{},
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
		Expect(host.Filters).To(BeNil())
	})
})

var _ = Describe("A service whose routes would have many copies of a descriptor set", func() {
	It("is closed", func() {
		// 16 bytes short of 8 KiB, so that 2,052 routes have less than 16 MiB.
		set := base64.StdEncoding.EncodeToString(make([]byte, 8192-16))
		tree := &model.ServiceTree{
			Service: &model.Service{Name: "shop", FQDN: "shop.example.com"}, Routes: make([]*model.RouteTree, 2052),
			Filters: []*model.ParsedFilter{{Filter: &model.Filter{Name: "json", Type: model.FilterGRPCJSON}, Type: model.FilterGRPCJSON, Spec: &model.GRPCJSONFilter{DescriptorSet: set}}},
		}
		Expect(compile.ClosedHost(tree)).To(BeNil())
		tree.Routes = make([]*model.RouteTree, 2053)
		Expect(compile.ClosedHost(tree)).To(Equal(&model.Condition{
			Key: model.ServiceKey("shop"), Code: "Quarantined",
			Message: "the service has filter json, whose descriptor set is copied into every route: at most 2052 routes may have one of this size " +
				"(attach the filter to the routes that take its calls, or make the set smaller), and answers 503",
		}))
	})
})
