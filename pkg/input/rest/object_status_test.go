package rest_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const everywhere = "Programmed+ every Envoy that it reaches has it"

var _ = Describe("The status of an object", func() {
	It("comes after its fields", func() {
		a, _, _ := watched("/service", "Service_Name=shop&fqdn=shop.example")
		a.get("/service/shop").expectJSON(200, `{"data":{"core_db_service":[{"service_id":1,"service_name":"shop","fqdn":"shop.example","https":"both","hsts_seconds":0,"hsts_subdomains":false,"client_validation_cacertificate":"","certificate":"","public":false,"mode":"http","port":0,"exempt_filters":[],"tags":[],`+
			`"create_ts":"`+timestamp+`","update_ts":"`+timestamp+`","status":{"conditions":[`+
			`{"code":"Accepted","status":true,"message":"it is a part of the configuration"},`+
			`{"code":"Programmed","status":false,"message":"no proxy uses it"},`+
			`{"code":"Unattached","status":true,"message":"no proxy serves it: POST /proxy/{proxy}/service/shop"}],"lagging":[]}}]}}`)
	})

	It("does not change the ETag", func() {
		a, registry, built := watched(shop()...)
		before := a.get("/service/shop")
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw"})
		built.wanted["gw"] = 8
		after := a.get("/service/shop")
		Expect(after.body).NotTo(Equal(before.body))
		Expect(after.header.Get("ETag")).To(Equal(before.header.Get("ETag")))
	})

	It("follows an object from being stored to reaching every Envoy", func() {
		a, registry, built := watched(shop()...)
		built.revision = 7
		Expect(a.get("/service/shop").conditions()).To(Equal([]string{
			accepted, "Programmed- revision 8 is stored; Envoys get revision 7 so far", "lag gw  slow",
		}))
		built.revision, built.wanted["gw"] = 8, 8
		Expect(a.get("/service/shop").conditions()).To(Equal([]string{
			accepted, `Programmed- no Envoy of proxy "gw" is connected`, "lag gw  not_connected",
		}))
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw", Address: "one"})
		registry.Connect(status.Envoy{ID: 2, Proxy: "gw", Address: "two"})
		Expect(a.get("/service/shop").conditions()).To(Equal([]string{
			accepted, "Programmed- the Envoy at one has not answered yet; lagging lists this and 1 more", "lag gw one slow", "lag gw two slow",
		}))
		registry.SetProgress(1, status.Progress{Applied: 8})
		registry.SetProgress(2, status.Progress{Waiting: []status.Wait{{Host: "shop", Object: shopKey, Clusters: []status.Awaited{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}}}})
		Expect(a.get("/service/shop").conditions()).To(Equal([]string{
			accepted, `Programmed- the Envoy at two does not have service "shop" yet: it waits for a, b, c and 1 more`, "lag gw two waiting",
		}))
		registry.SetProgress(2, status.Progress{Applied: 9})
		for _, path := range []string{
			"/service/shop", "/service/shop/route/root", "/upstream/blue", "/upstream/green", "/proxy/gw", "/proxy/gw/service/shop",
		} {
			Expect(a.get(path).conditions()).To(Equal([]string{accepted, everywhere}), path)
		}
	})

	It("is about the object, whatever else an Envoy refuses or waits for", func() {
		a, registry, built := watched(append(shop(),
			"/upstream", "Upstream_name=red&Upstream_ip=10.0.0.3&Upstream_port=80",
			"/service", "Service_Name=late&fqdn=late.example",
			"/service/late/route", "Route_Name=root&Route_prefix=/",
			"/service/late/route/root/upstream/red", "",
			"/service/late/route/root/upstream/green", "",
			"/proxy/gw/service/late", "",
			"/service", "Service_Name=bad&fqdn=bad.example",
			"/service/bad/route", "Route_Name=root&Route_prefix=/",
			"/proxy/gw/service/bad", "")...)
		built.wanted["gw"] = 17
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw", Address: "one"})
		registry.RecordSent(1, clusterURL, status.Answer{At: at("08:00:02")})
		registry.RecordSent(1, routeURL, status.Answer{At: at("08:00:01")})
		registry.RecordAck(1, routeURL, status.Answer{At: at("08:00:03")})
		registry.SetProgress(1, status.Progress{
			Applied: 8,
			Waiting: []status.Wait{{Host: "late", Object: model.ServiceKey("late"), Clusters: []status.Awaited{cluster("green", "red")}}},
			Refused: []status.Refusal{
				{TypeURL: routeURL, Resource: "bad", Objects: []model.Key{model.ServiceKey("bad")}, Text: "bad regex"},
				{TypeURL: listenerURL, Resource: "http-0.0.0.0:8080", Text: "cannot bind"},
			},
		})
		waits := []string{accepted, `Programmed- the Envoy at one does not have service "late" yet: it waits for green+red`, "lag gw one waiting"}
		for path, want := range map[string][]string{
			"/service/shop":            {accepted, everywhere},
			"/service/shop/route/root": {accepted, everywhere},
			"/upstream/blue":           {accepted, everywhere},
			"/upstream/green":          waits,
			"/upstream/red":            waits,
			"/service/late":            waits,
			"/service/late/route/root": waits,
			"/service/bad": {
				accepted, "Programmed- the Envoy at one refused it: bad regex", "Rejected+ bad regex", "lag gw one refused",
			},
			"/service/bad/route/root": {
				accepted, `Programmed- the Envoy at one refused service "bad": bad regex`, "lag gw one refused",
			},
			"/proxy/gw": {
				accepted, "Programmed- the Envoy at one refused it: cannot bind", "Rejected+ cannot bind", "lag gw one refused",
			},
		} {
			Expect(a.get(path).conditions()).To(Equal(want), path)
		}

		By("what is still being sent may be anything")
		registry.RecordSent(1, routeURL, status.Answer{At: at("08:00:04")})
		Expect(a.get("/service/shop").conditions()).To(ContainElement("lag gw one slow"))
		registry.RecordNack(1, routeURL, status.Answer{At: at("08:00:05")})
		Expect(a.get("/service/shop").conditions()).To(ContainElement(everywhere))
	})

	It("reports a refused cluster on its upstreams", func() {
		a, registry, built := watched(shop()...)
		built.wanted["gw"] = 8
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw", Address: "one"})
		registry.SetProgress(1, status.Progress{
			Waiting: []status.Wait{{Host: "shop", Object: shopKey, Clusters: []status.Awaited{cluster("blue", "green")}}},
			Refused: []status.Refusal{{TypeURL: clusterURL, Resource: "blue+green", Objects: cluster("blue", "green").Objects, Text: "no such policy"}},
		})
		for _, u := range []string{"/upstream/blue", "/upstream/green"} {
			Expect(a.get(u).conditions()).To(ContainElement("Rejected+ no such policy"))
		}
		Expect(a.get("/service/shop").conditions()).To(ContainElement("lag gw one waiting"))
	})

	It("has what was found before any Envoy received it", func() {
		a, registry, _ := watched(append(shop(), "/filter", `Filter_name=login&Filter_type=route_filter_ratelimit&Filter_config={"descriptors":[{"remote_address":"x"}]}`)...)
		registry.SetConditions("service shop", []model.Condition{
			{Key: model.RouteKey("shop", "root"), Code: model.NoUpstream, Message: "answers <503>"},
			{Key: model.ServiceFilterKey("shop", "login"), Code: model.Quarantined, Message: "no logins"},
		})
		registry.SetConditions("proxy gw", []model.Condition{{Key: model.ProxyServiceKey("gw", "shop"), Code: model.HostConflict, Message: "other is served"}})
		const closed = "Accepted- it cannot work as it is written: no logins"
		Expect(a.get("/service/shop").conditions()).To(And(
			HaveExactElements(Equal(closed), HavePrefix("Programmed-"), Equal("HostConflict+ other is served /proxy/gw/service/shop"),
				Equal("Quarantined+ no logins /service/shop/filter/login"), HavePrefix("lag"))))
		Expect(a.get("/service/shop/route/root").conditions()).To(ContainElements(closed,
			"NoUpstream+ answers <503>", "Quarantined+ no logins /service/shop/filter/login"))
		Expect(a.get("/service/shop/route/root").body).To(ContainSubstring("answers <503>"), "text is not escaped")
		Expect(a.get("/proxy/gw").conditions()).To(ContainElement("HostConflict+ other is served /proxy/gw/service/shop"))
		Expect(a.get("/filter/login").conditions()).To(ContainElements(closed, "Unattached+ no service of a proxy uses it"))
	})

	It("covers the proxies that filters, secrets and global configs reach", func() {
		const rates = `globalconfig_type=globalconfig_ratelimit&config={"domain":"a","descriptors":[{"key":"remote_address","rate_limit":{"unit":"second","requests_per_unit":5}}]}`
		limit := `Filter_type=route_filter_ratelimit&Filter_config={"descriptors":[{"remote_address":"x"}]}`
		a, registry, built := watched(append(shop(),
			"/filter", "Filter_name=route&"+limit, "/service/shop/route/root/filter/route", "",
			"/filter", "Filter_name=service&"+limit, "/service/shop/filter/service", "",
			"/filter", "Filter_name=none&"+limit,
			"/secret", "Secret_name=attached&Secret_value=x", "/service/shop/secret/attached", "",
			"/secret", "Secret_name=none&Secret_value=x",
			"/secret", "Secret_name=ca",
			"/globalconfig", "globalconfig_name=all&"+rates)...)
		Expect(a.patch("/upstream/blue", "Upstream_protocol=tls&Upstream_validation_cacertificate=ca").status).To(Equal(200))
		built.revision, built.wanted["gw"] = a.revision(), 8
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw", Address: "one"})
		registry.SetProgress(1, status.Progress{Waiting: []status.Wait{{Host: "shop", Object: shopKey}}})
		for path, want := range map[string]string{
			"/filter/route": "lag gw one waiting", "/filter/service": "lag gw one waiting", "/filter/none": "Unattached+ no service of a proxy uses it",
			"/secret/attached": "lag gw one waiting", "/secret/ca": "lag gw one waiting", "/secret/none": "Unattached+ no service of a proxy uses it",
			"/globalconfig/all": everywhere,
		} {
			Expect(a.get(path).conditions()).To(ContainElement(want), path)
		}

		By("lists report the same")
		Expect(codes(a.get("/filter?status=true"))).To(Equal([]string{"Programmed", "Programmed", "Unattached"}))
		Expect(codes(a.get("/secret?status=true"))).To(Equal([]string{"Programmed", "Unattached", "Programmed"}))
	})

	It("is in lists on request", func() {
		a, _, _ := watched(append(shop(), "/upstream", "Upstream_name=red&Upstream_ip=10.0.0.3&Upstream_port=80")...)
		for _, path := range []string{
			"/upstream", "/service", "/service/shop/route", "/proxy", "/filter", "/globalconfig", "/secret",
			"/service/shop/route/root/upstream", "/proxy/gw/service", "/upstream/blue/route", "/service/shop/proxy",
		} {
			Expect(a.get(path).body).NotTo(ContainSubstring(`"status"`), path)
			Expect(a.get(path+"?status=false").body).NotTo(ContainSubstring(`"status"`), path)
			Expect(a.get(path+"?status=true").status).To(Equal(200), path)
		}
		Expect(codes(a.get("/upstream?status=true"))).To(Equal([]string{"Programmed", "Programmed", "Unattached"}))
		Expect(codes(a.get("/upstream?status=true&limit=2"))).To(HaveLen(2))
		a.get("/upstream?status=yes").expectProblem(400, invalid("/upstream", "status", `\"yes\" is neither true nor false`))
	})

	It("costs a list a number of queries that does not depend on its length", func() {
		registry, queries := status.NewRegistry(), 0
		a := startAPI(open, func(o *rest.Options) {
			o.Live.Status, o.Live.Snapshots = registry, &snapshots{}
			o.Store = counting{o.Store, &queries}
		})
		a.given(shop()...)
		count := func(path string) int {
			GinkgoHelper()
			queries = 0
			Expect(a.get(path).status).To(Equal(200))
			return queries
		}
		plain, few := count("/upstream"), count("/upstream?status=true")
		for i := range 50 {
			a.given("/upstream", fmt.Sprintf("Upstream_name=u%d&Upstream_ip=10.0.1.1&Upstream_port=80", i), fmt.Sprintf("/service/shop/route/root/upstream/u%d", i), "")
			registry.Connect(status.Envoy{ID: int64(i), Proxy: "gw"})
		}
		Expect(plain).To(Equal(1))
		Expect(few).To(Equal(6)) // with the links of upstreams, the filters and global configs that name one, the proxies of services, and the revision
		Expect(count("/upstream")).To(Equal(plain))
		Expect(count("/upstream?status=true")).To(Equal(few))
	})
})

// codes returns the last condition of each object of a list.
func codes(a answer) (list []string) {
	GinkgoHelper()
	for _, o := range a.elements() {
		list = append(list, o.Status.Conditions[len(o.Status.Conditions)-1].Code)
	}
	return list
}

// counting counts the queries of reads.
type counting struct {
	store.Store
	queries *int
}

func (c counting) Read(ctx context.Context, fn func(store.Reader) error) error {
	return c.Store.Read(ctx, func(r store.Reader) error { return fn(countingReader{r, c.queries}) })
}

type countingReader struct {
	store.Reader
	queries *int
}

func (c countingReader) Get(key model.Key) (model.Object, error) {
	*c.queries++
	return c.Reader.Get(key)
}

func (c countingReader) List(q store.Query) ([]model.Object, error) {
	*c.queries++
	return c.Reader.List(q)
}

func (c countingReader) Revision() (int64, error) {
	*c.queries++
	return c.Reader.Revision()
}
