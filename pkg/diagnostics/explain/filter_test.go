package explain_test

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("HTTP filters", func() {
	It("are known, for every type that a proxy can have", func() {
		Expect(translate.HTTPFilters()).To(HaveEach(Satisfy(explain.IsKnown)))
	})

	const strange, scripts = "envoy.filters.http.tap", "envoy.filters.http.lua"
	packed := func(m proto.Message) *anypb.Any {
		GinkgoHelper()
		out, err := anypb.New(m)
		Expect(err).NotTo(HaveOccurred())
		return out
	}
	// with returns a state with a filter on the listener, if there is true, and
	// its configuration on a service and on its route.
	with := func(name string, there, disabled bool, ofHost, ofRoute proto.Message) explain.State {
		GinkgoHelper()
		r := answering("r", prefixed("/a"))
		if ofRoute != nil {
			r.TypedPerFilterConfig = map[string]*anypb.Any{name: packed(ofRoute)}
		}
		encoded, err := snapshot.NewRoute(r)
		Expect(err).NotTo(HaveOccurred())
		vh := &routev3.VirtualHost{Name: "shop", Domains: []string{"shop.test"}}
		if ofHost != nil {
			vh.TypedPerFilterConfig = map[string]*anypb.Any{name: packed(ofHost)}
		}
		h, err := snapshot.NewHost(vh, []*snapshot.Route{encoded}, snapshot.ObjectRef{Kind: "service", Name: "shop"})
		Expect(err).NotTo(HaveOccurred())
		return stateWith(func(l *hcmv3.HttpConnectionManager) {
			if there {
				l.HttpFilters = append([]*hcmv3.HttpFilter{{
					Name: name, Disabled: disabled, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&luav3.Lua{})},
				}}, l.GetHttpFilters()...)
			}
		}, h)
	}
	const unknown = "explain does not know the filter envoy.filters.http.tap, so "
	on, off := &luav3.LuaPerRoute{Override: &luav3.LuaPerRoute_Name{Name: "x"}}, &routev3.FilterConfig{Disabled: true}

	It("run scripts, whose effect is not known", func() {
		a := ask(with(scripts, false, true, on, nil), "http://shop.test/a")
		Expect(a.UnknownFilters).To(Equal([]string{scripts}))
		Expect(a.Filters).To(ContainElement(explain.Filter{Name: scripts, Message: "is set by the service, and explain does not know what it does"}))
		Expect(ask(with(scripts, false, true, nil, nil), "http://shop.test/a").UnknownFilters).To(BeEmpty())
	})

	DescribeTable("of unknown types make the answer uncertain, and it says so", func(there, disabled bool, ofHost, ofRoute proto.Message) {
		a := ask(with(strange, there, disabled, ofHost, ofRoute), "http://shop.test/a")
		Expect(a.UnknownFilters).To(Equal([]string{strange}))
		Expect(a.Message).To(HaveSuffix("; " + unknown + "it may be different"))
		Expect(a.Steps).To(ContainElement(explain.Step{Code: "filter", Message: unknown + "what follows may be different"}))
		Expect(a.Code).To(Equal(explain.DirectResponse), "what would happen without it")
	},
		Entry("on the listener", true, false, nil, nil),
		Entry("turned on by the service", true, true, on, nil),
		Entry("turned on by the route", true, true, nil, on),
		Entry("turned off by the service and on by the route", true, false, off, on),
		Entry("set by a service alone", false, false, on, nil),
		Entry("set by a route alone", false, false, nil, on),
		Entry("set by both", false, false, on, on),
	)

	It("of unknown types appear in the list of filters", func() {
		Expect(ask(with(strange, true, false, nil, on), "http://shop.test/a").Filters).To(ContainElement(explain.Filter{
			Name: strange, Message: "is set by the route, and explain does not know what it does",
		}))
	})

	It("are also run if no route or host is found", func() {
		Expect(ask(with(strange, true, false, nil, nil), "http://shop.test/b").UnknownFilters).To(Equal([]string{strange}))
		Expect(ask(with(strange, true, false, nil, nil), "http://other.test/").UnknownFilters).To(Equal([]string{strange}))
		Expect(ask(with(strange, true, true, nil, on), "http://shop.test/b").UnknownFilters).To(BeEmpty())
	})

	DescribeTable("of unknown types change nothing if they are off", func(disabled bool, ofHost, ofRoute proto.Message) {
		a := ask(with(strange, true, disabled, ofHost, ofRoute), "http://shop.test/a")
		Expect(a.UnknownFilters).To(BeEmpty())
		Expect(a.Message).NotTo(ContainSubstring(strange))
		Expect(a.Filters).To(ContainElement(explain.Filter{Name: strange, Message: "is off"}))
	},
		Entry("on the listener", true, nil, nil),
		Entry("for the service", false, off, nil),
		Entry("for the route", false, nil, off),
		Entry("for the route, and on for the service", true, on, off),
	)
})
