package model_test

import (
	"encoding/json"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("Time", func() {
	It("is written with six digits and a numeric offset, and read back", func() {
		t := model.At(time.Date(2026, 11, 21, 9, 7, 39, 123456789, time.FixedZone("", 3600)))
		text, err := json.Marshal(t)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(Equal(`"2026-11-21T08:07:39.123456+00:00"`))
		var back model.Time
		Expect(json.Unmarshal(text, &back)).To(Succeed())
		Expect(back).To(Equal(t))
	})

	DescribeTable("is read from the formats of databases", func(src any, want string) {
		var t model.Time
		Expect(t.Scan(src)).To(Succeed())
		Expect(t.String()).To(Equal(want))
		Expect(t.Location()).To(Equal(time.UTC))
	},
		Entry("a time", time.Date(2026, 11, 21, 9, 7, 39, 123456789, time.FixedZone("", 3600)), "2026-11-21T08:07:39.123456+00:00"),
		Entry("the format that this program writes", "2026-11-21 08:07:39.123456+00:00", "2026-11-21T08:07:39.123456+00:00"),
		Entry("without a fraction", "2026-11-21 08:07:39+00:00", "2026-11-21T08:07:39.000000+00:00"),
		Entry("a short fraction", "2026-11-21 08:07:39.5+00:00", "2026-11-21T08:07:39.500000+00:00"),
		Entry("another offset", "2026-11-21 08:07:39.123456789-01:30", "2026-11-21T09:37:39.123456+00:00"),
		Entry("RFC 3339", "2026-11-21T08:07:39Z", "2026-11-21T08:07:39.000000+00:00"),
		Entry("the format of SQLite's datetime()", "2026-11-21 08:07:39", "2026-11-21T08:07:39.000000+00:00"),
		Entry("without seconds", "2026-11-21 08:07", "2026-11-21T08:07:00.000000+00:00"),
		Entry("a day", "2026-11-21", "2026-11-21T00:00:00.000000+00:00"),
		Entry("the format that Go prints", "2026-11-21 08:07:39.5 +0100 CET", "2026-11-21T07:07:39.500000+00:00"),
	)

	DescribeTable("is not read from anything else", func(src any, message string) {
		var t model.Time
		Expect(t.Scan(src)).To(MatchError(ContainSubstring(message)))
	},
		Entry("nothing", "", `"" is not a time`),
		Entry("a word", "yesterday", `"yesterday" is not a time such as 2006-01-02 15:04:05`),
		Entry("a thirteenth month", "2026-13-21 08:07:39.123456+00:00", "is not a time"),
		Entry("text after a time", "2026-11-21 08:07:39.123456+00:00 and more", "is not a time"),
		Entry("a number", int64(7), "have int64, want a time"),
	)
})

var _ = DescribeTable("Key.Path", func(key model.Key, path string) {
	Expect(key.Path()).To(Equal(path))
},
	Entry(nil, model.UpstreamKey("blue"), "/upstream/blue"),
	Entry(nil, model.ServiceKey("shop"), "/service/shop"),
	Entry(nil, model.ProxyKey("gw"), "/proxy/gw"),
	Entry(nil, model.RouteKey("shop", "root"), "/service/shop/route/root"),
	Entry(nil, model.RouteUpstreamKey("shop", "root", "blue"), "/service/shop/route/root/upstream/blue"),
	Entry(nil, model.ProxyServiceKey("gw", "shop"), "/proxy/gw/service/shop"),
)

var _ = Describe("Error", func() {
	It("states what happened, where, what to do next, and why", func() {
		e := &model.Error{
			Kind: model.Invalid, Message: "invalid upstream", Hint: "mend them",
			Fields: []model.FieldError{{Field: "a", Message: "x"}, {Field: "b", Message: "y"}}, Err: errors.New("cause"),
		}
		Expect(e.Error()).To(Equal("invalid upstream: a: x; b: y (mend them): cause"))
	})
	It("names what does not exist, including a nested path", func() {
		Expect(model.NotFoundError(model.RouteKey("shop", "root")).Message).To(Equal(`route "root" of service "shop" does not exist`))
		Expect(model.NotFoundError(model.RouteUpstreamKey("shop", "root", "blue")).Message).
			To(Equal(`the link from route "shop/root" to upstream "blue" does not exist`))
		Expect(model.ExistsError(model.ProxyKey("gw")).Message).To(Equal(`proxy "gw" already exists`))
	})
})

var _ = Describe("Config.Apply", func() {
	var c *model.Config
	entry := func(o model.Object) model.Entry { return model.Entry{Key: o.Key(), Object: o} }
	apply := func(full bool, entries ...model.Entry) model.Touched {
		return c.Apply(model.Change{Revision: c.Revision + 1, Full: full, Entries: entries})
	}
	shop := &model.Service{ID: 1, Name: "shop", FQDN: "*", HTTPS: model.HTTPSBoth}
	root := &model.Route{ID: 1, Service: "shop", Name: "root", Prefix: "/"}
	api := &model.Route{ID: 2, Service: "shop", Name: "api", Prefix: "/api"}
	blue := &model.Upstream{ID: 1, Name: "blue"}
	link := &model.RouteUpstream{ID: 1, Service: "shop", Route: "root", Upstream: "blue"}
	gw := &model.Proxy{ID: 1, Name: "gw"}
	attached := &model.ProxyService{ID: 1, Proxy: "gw", Service: "shop"}

	BeforeEach(func() {
		c = model.NewConfig()
		apply(true, entry(shop), entry(root), entry(api), entry(blue), entry(link), entry(gw), entry(attached))
	})

	It("assembles the trees", func() {
		tree := c.Service("shop")
		Expect(tree.Service).To(BeIdenticalTo(shop))
		Expect(tree.Routes).To(HaveLen(2))
		Expect(tree.Routes[0]).To(Equal(&model.RouteTree{Route: root, Upstreams: []*model.Upstream{blue}}))
		Expect(tree.Routes[1]).To(Equal(&model.RouteTree{Route: api}))
		Expect(c.Proxy("gw")).To(Equal(&model.ProxyTree{Proxy: gw, Services: []string{"shop"}}))
		Expect(c.ProxiesOf("shop")).To(Equal([]string{"gw"}))
	})

	It("replaces what an upstream is used in, and keeps the rest", func() {
		before := c.Service("shop")
		touched := apply(false, entry(&model.Upstream{ID: 1, Name: "blue", Port: 81}))
		Expect(touched).To(Equal(model.Touched{Services: []string{"shop"}}))
		after := c.Service("shop")
		Expect(after).NotTo(BeIdenticalTo(before))
		Expect(after.Routes[0].Upstreams[0].Port).To(Equal(81))
		Expect(after.Routes[1]).To(BeIdenticalTo(before.Routes[1]))
	})

	It("replaces what a filter is attached to if a secret or an upstream that it names changes", func() {
		login := &model.Filter{ID: 1, Name: "login", Type: model.FilterOIDC, Config: `{"cookie_secret":"cookies","upstream":"idp"}`}
		apply(false, entry(login), entry(&model.ServiceFilter{ID: 1, Service: "shop", Filter: "login"}))
		for _, named := range []model.Object{&model.Secret{ID: 1, Name: "cookies"}, &model.Upstream{ID: 2, Name: "idp"}} {
			before := c.Service("shop")
			Expect(apply(false, entry(named))).To(Equal(model.Touched{Services: []string{"shop"}}))
			Expect(c.Service("shop").Routes[1]).NotTo(BeIdenticalTo(before.Routes[1]))
		}
	})

	It("replaces the proxies that a global config applies to if a secret that it names changes", func() {
		oauth := &model.GlobalConfig{ID: 1, Name: "oauth", Type: model.GlobalConfigOAuth, Config: `{"openid_connect":{"hmac_secret":"hmac"}}`}
		apply(false, entry(oauth), entry(&model.Proxy{ID: 2, Name: "inner"}))
		hmac := entry(&model.Secret{ID: 1, Name: "hmac"})
		Expect(apply(false, hmac)).To(Equal(model.Touched{Proxies: []string{"gw", "inner"}}))
		apply(false, entry(&model.ProxyGlobalConfig{ID: 1, Proxy: "inner", GlobalConfig: "oauth"}))
		Expect(apply(false, hmac)).To(Equal(model.Touched{Proxies: []string{"inner"}}))
	})

	It("touches a proxy if it changes or gets an attachment", func() {
		Expect(apply(false, entry(&model.Proxy{ID: 1, Name: "gw", HTTPPort: 81}))).To(Equal(model.Touched{Proxies: []string{"gw"}}))
		Expect(apply(false, model.Entry{Key: attached.Key()})).To(Equal(model.Touched{Proxies: []string{"gw"}}))
		Expect(c.Proxy("gw").Services).To(BeEmpty())
	})

	It("forgets what is deleted", func() {
		apply(false, model.Entry{Key: link.Key()}, model.Entry{Key: root.Key()}, model.Entry{Key: api.Key()},
			model.Entry{Key: attached.Key()}, model.Entry{Key: shop.Key()})
		Expect(c.Service("shop")).To(BeNil())
		Expect(c.ProxiesOf("shop")).To(BeEmpty())
	})

	It("forgets what a full change does not contain", func() {
		touched := apply(true, entry(blue), entry(gw))
		Expect(touched.Services).To(Equal([]string{"shop"}))
		Expect(c.Service("shop")).To(BeNil())
		Expect(c.Proxy("gw").Services).To(BeEmpty())
	})
})
