package precheck_test

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ = Describe("Warnings", func() {
	// warned stores objects, runs a change and returns the warnings.
	warned := func(stored []model.Object, change func(store.Writer) error) (list []string, reads int) {
		GinkgoHelper()
		givenUp := errors.New("given up")
		_, failed := db.Write(context.Background(), store.Origin{Actor: "test"}, func(w store.Writer) error {
			Expect(insert(stored...)(w)).To(Succeed())
			before := w.Count().Total()
			Expect(change(w)).To(Succeed())
			counted := &counter{Reader: w}
			var err error
			list, err = precheck.Rules{}.Warnings(counted, behind(w, before))
			Expect(err).NotTo(HaveOccurred())
			reads = counted.reads
			return givenUp
		})
		Expect(failed).To(BeIdenticalTo(givenUp))
		return list, reads
	}
	up := model.NewUpstream()
	up.Name, up.IP, up.Port = "blue", "192.0.2.1", 80
	gw := model.NewProxy()
	gw.Name = "gw"
	filter := func(config string) *model.Filter {
		return &model.Filter{Name: "limit", Type: model.FilterRateLimit, Config: model.JSON(config)}
	}
	rates := func(name, config string) *model.GlobalConfig {
		return &model.GlobalConfig{Name: name, Type: model.GlobalConfigRateLimit, Config: model.JSON(config)}
	}
	const byPath = `{"domain":"shop","descriptors":[{"key":"path","rate_limit":{"unit":"day","requests_per_unit":1}}]}`
	link := &model.RouteFilter{Service: "shop", Route: "root", Filter: "limit"}
	world := []model.Object{
		up, &model.Service{Name: "shop", FQDN: "*", HTTPS: model.HTTPSBoth}, &model.Route{Service: "shop", Name: "root", Prefix: "/"},
		&model.RouteUpstream{Service: "shop", Route: "root", Upstream: "blue"}, gw, &model.ProxyService{Proxy: "gw", Service: "shop"},
	}
	with := func(more ...model.Object) []model.Object { return append(append([]model.Object{}, world...), more...) }
	path, method := filter(`{"descriptors":[{"path":"x"}]}`), filter(`{"descriptors":[{"method":"x"}]}`)

	office := &model.Filter{Name: "office", Type: model.FilterIPAccess, Config: `{"allow":["192.0.2.0/24"]}`}
	on := true
	limited := &model.Filter{Name: "small", Type: model.FilterBodyLimit, Config: `{"bytes":1}`}
	websockets := &model.Route{Service: "shop", Name: "ws", Prefix: "/ws", Config: model.RouteConfig{Websocket: &on}}
	streams := model.NewUpstream()
	streams.Name, streams.IP, streams.Port, streams.Protocol = "grpc", "192.0.2.2", 80, "h2c"
	// The descriptor set of shop.Books, which has GET /b/{id} and GET /b for a message
	// with the field id.
	const overridden = "CpQBCgdiLnByb3RvEgRzaG9wIhYKBEJvb2sSDgoCaWQYASABKANSAmlkMmMKBUJvb2tzEi4KA0dldBIKLnNob3AuQm9vaxoKLnNob3AuQm9vayIPgtPkkwIJEgcvYi97aWR9EioKBExpc3QSCi5zaG9wLkJvb2saCi5zaG9wLkJvb2siCoLT5JMCBBICL2JiBnByb3RvMw=="
	calls := &model.Filter{Name: "web", Type: model.FilterGRPCWeb, Config: `{}`}
	served := &model.ProxyService{Proxy: "edge", Service: "shop"}
	trusting := func(ip string) *model.Proxy {
		p := model.NewProxy()
		p.Name, p.ListenIP, p.TrustedHops = "edge", ip, 1
		return p
	}
	notTrusting := model.NewProxy()
	notTrusting.Name = "edge"
	const chosen = "compares the address in X-Forwarded-For, because proxy edge has Trusted_hops 1 and listens on 0.0.0.0: " +
		"a client that reaches that port directly chooses its address; let only the proxies in front reach it"

	DescribeTable("tells of", func(stored []model.Object, change func(store.Writer) error, want ...string) {
		list, _ := warned(stored, change)
		Expect(list).To(HaveExactElements(want))
	},
		Entry("nothing if the filter limits", with(rates("a", byPath), path), insert(link)),
		Entry("an attached filter without a matching rate", with(rates("a", byPath), method), insert(link),
			`/service/shop/route/root/filter/limit descriptor method meets no rate of domain "shop"; the nearest is path (proxy gw)`),
		Entry("an attached filter that is changed", with(rates("a", byPath), path, link), replace(method),
			`/service/shop/route/root/filter/limit descriptor method meets no rate of domain "shop"; the nearest is path (proxy gw)`),
		Entry("a filter of a whole service", with(method), insert(&model.ServiceFilter{Service: "shop", Filter: "limit"}),
			`/service/shop/filter/limit limits nothing: no globalconfig_ratelimit applies (proxy gw)`),
		Entry("a domain that does not exist", with(rates("a", byPath), filter(`{"domain":"shp","descriptors":[{"path":"x"}]}`)), insert(link),
			`/service/shop/route/root/filter/limit limits nothing: no globalconfig_ratelimit of domain "shp" applies; the nearest is "shop" (proxy gw)`),
		Entry("a route without upstreams", []model.Object{world[1], world[2], gw, world[5], rates("a", byPath), path}, insert(link),
			`/service/shop/route/root/filter/limit limits nothing here: only requests that go to an upstream are counted, and these are answered by the gateway`),
		Entry("nothing if no proxy serves it", with(method)[:4:4], insert(method, link)),
		Entry("a filter that nothing limits after a rate is detached", with(rates("a", byPath), path, link), func(w store.Writer) error {
			return w.Remove(model.GlobalConfigKey("a"))
		}, `/service/shop/route/root/filter/limit limits nothing: no globalconfig_ratelimit applies (proxy gw)`),
		Entry("nothing that was so before", with(rates("a", byPath), method, link), replace(rates("a", `{"domain":"shop","descriptors":[{"key":"path","rate_limit":{"unit":"week"}}]}`))),
		Entry("a rate that moves to another proxy", with(rates("a", byPath), path, link, other()), insert(&model.ProxyGlobalConfig{Proxy: "other", GlobalConfig: "a"}),
			`/service/shop/route/root/filter/limit limits nothing: no globalconfig_ratelimit applies (proxy gw)`),
		Entry("ranges with bits beyond their prefix length", world, insert(&model.Filter{Name: "office", Type: model.FilterIPAccess, Config: `{"allow":["192.0.2.9/24","192.0.2.9"],"deny":["2001:db8::1/64"]}`}),
			"/filter/office allow has 192.0.2.9/24, which is all of 192.0.2.0/24: write that, or the address alone",
			"/filter/office deny has 2001:db8::1/64, which is all of 2001:db8::/64: write that, or the address alone"),
		Entry("ranges of a list with bits beyond their prefix length", world, insert(&model.List{Name: "office", Type: model.ListAddresses, Config: `{"addresses":["192.0.2.9/24"]}`}),
			"/list/office addresses has 192.0.2.9/24, which is all of 192.0.2.0/24: write that, or the address alone"),
		Entry("addresses that clients choose, with the filter", with(office, trusting("0.0.0.0"), served), insert(&model.ServiceFilter{Service: "shop", Filter: "office"}),
			"/service/shop/filter/office "+chosen),
		Entry("addresses that clients choose, with the proxy", with(office, &model.RouteFilter{Service: "shop", Route: "root", Filter: "office"}, notTrusting, served), replace(trusting("0.0.0.0")),
			"/service/shop/route/root/filter/office "+chosen),
		Entry("addresses that clients choose, with the service", with(office, &model.ServiceFilter{Service: "shop", Filter: "office"}, trusting("0.0.0.0")), insert(served),
			"/service/shop/filter/office "+chosen),
		Entry("nothing if only the internal network can reach the port", with(office, trusting("10.0.0.1"), served), insert(&model.ServiceFilter{Service: "shop", Filter: "office"})),
		Entry("faults, and the share of requests", world, insert(&model.Filter{Name: "f", Type: model.FilterFault, Config: `{"abort":503,"percent":0.5,"header":"x-chaos"}`}),
			"/filter/f is for tests: 0.5% of the requests with the header x-chaos are delayed or fail where it is attached"),
		Entry("a limit below the size of an HTTP/2 frame", world, insert(&model.Filter{Name: "f", Type: model.FilterBodyLimit, Config: `{"bytes":16383}`}),
			"/filter/f limits bodies to 16383 bytes only over HTTP/1.1 or with a Content-Length: over HTTP/2, Envoy does not count a body without one that fits in one frame, of up to 16384 bytes"),
		Entry("nothing about a limit of that size", world, insert(&model.Filter{Name: "f", Type: model.FilterBodyLimit, Config: `{"bytes":16384}`})),
		Entry("bodies that can fill an Envoy's memory", world, insert(&model.Filter{Name: "f", Type: model.FilterBodyLimit, Config: `{"bytes":10485761}`}),
			"/filter/f allows bodies of 10485761 bytes, and an Envoy holds each whole body in memory until it is complete: send larger uploads to separate storage"),
		Entry("websockets that a limit of their service breaks", with(limited, websockets), insert(&model.ServiceFilter{Service: "shop", Filter: "small"}),
			"/service/shop/filter/small refuses the websockets that /service/shop/route/ws allows: the limit would wait for their end"),
		Entry("streams that a limit delays", with(limited, streams, &model.RouteUpstream{Service: "shop", Route: "root", Upstream: "grpc"}), insert(&model.RouteFilter{Service: "shop", Route: "root", Filter: "small"}),
			"/service/shop/route/root/filter/small holds requests to upstream grpc of /service/shop/route/root until they are complete: streams, such as those of gRPC, would wait"),
		Entry("nothing about a limit without websockets or streams", with(limited), insert(&model.ServiceFilter{Service: "shop", Filter: "small"})),
		Entry("calls to an upstream without gRPC", with(calls), insert(&model.ServiceFilter{Service: "shop", Filter: "web"}),
			"/service/shop/filter/web converts requests of /service/shop/route/root to gRPC, and upstream blue has the protocol http, which cannot carry gRPC: set its Upstream_protocol to h2c, or to h2 if it has TLS"),
		Entry("calls after a filter is changed to one for calls", with(&model.Filter{Name: "web", Type: model.FilterCompress, Config: `{}`}, &model.RouteFilter{Service: "shop", Route: "root", Filter: "web"}), replace(calls),
			"/service/shop/route/root/filter/web converts requests of /service/shop/route/root to gRPC, and upstream blue has the protocol http, which cannot carry gRPC: set its Upstream_protocol to h2c, or to h2 if it has TLS"),
		Entry("nothing about calls to an upstream with gRPC", with(calls, streams, &model.Route{Service: "shop", Name: "api", Prefix: "/api"}, &model.RouteUpstream{Service: "shop", Route: "api", Upstream: "grpc"}),
			insert(&model.RouteFilter{Service: "shop", Route: "api", Filter: "web"})),
		Entry("a path that a query parameter overrides", world, insert(&model.Filter{Name: "f", Type: model.FilterGRPCJSON, Config: model.JSON(
			`{"services":["shop.Books"],"descriptor_set":"` + overridden + `"}`)}),
			"/filter/f makes rules by path unreliable: the query parameter id takes the place of what the path of GET /b/{id} says: GET /b needs it too"),
		Entry("messages that can fill an Envoy's memory", world, insert(&model.Filter{Name: "f", Type: model.FilterGRPCJSON, Config: `{"services":["shop.Books"],"auto_mapping":true,"max_response_body_size":10485761,
			"descriptor_set":"CksKCnNob3AucHJvdG8SBHNob3AiBgoEQm9vazInCgVCb29rcxIeCgRQaW5nEgouc2hvcC5Cb29rGgouc2hvcC5Cb29rYgZwcm90bzM="}`}),
			"/filter/f allows messages of more than 10 MiB, and an Envoy holds each whole message in memory: move larger files to separate storage"),
		Entry("exceptions with bits beyond their prefix length", world, insert(&model.Filter{Name: "f", Type: model.FilterMaintenance, Config: `{"except":["192.0.2.9/24"]}`}),
			"/filter/f except has 192.0.2.9/24, which is all of 192.0.2.0/24: write that, or the address alone"),
		Entry("nothing about what is deleted again", with(method), func(w store.Writer) error {
			return errors.Join(insert(link)(w), w.Remove(link.Key()), w.Remove(method.Key()))
		}),
	)

	It("cost nothing if no filter is affected, and little if many are", func() {
		_, reads := warned(with(method, link), replace(&model.Route{Service: "shop", Name: "root", Prefix: "/new"}))
		Expect(reads).To(BeZero())
		_, reads = warned(with(method, link), replace(&model.Service{Name: "shop", FQDN: "shop.test", HTTPS: model.HTTPSBoth}))
		Expect(reads).To(Equal(3), "a login may apply to another host: its filters, and the global configs with their links")
		many := with(method)
		for i := range 300 {
			name := fmt.Sprint("r", i)
			many = append(many, &model.Route{Service: "shop", Name: name, Prefix: "/"}, &model.RouteFilter{Service: "shop", Route: name, Filter: "limit"})
		}
		list, reads := warned(many, replace(path))
		Expect(list).To(BeEmpty(), "only the status reports so many")
		Expect(reads).To(Equal(3))
	})
})

func other() *model.Proxy {
	p := model.NewProxy()
	p.Name = "other"
	return p
}
