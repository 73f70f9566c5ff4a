package pipeline_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("Tokens whose keys are fetched", func() {
	api := func() *model.Filter {
		return &model.Filter{Name: "api", Type: "http_filter_jwt", Config: `{"issuer":"us","jwks_uri":"https://us.test/keys"}`}
	}
	said := func(keys, fault string) map[model.Key]model.Providers {
		return map[model.Key]model.Providers{model.FilterKey("api"): {{Source: model.ProviderSource{JWKSURI: "https://us.test/keys"}, JWKS: keys, Fault: fault}}}
	}
	const one, two = `{"keys":["one"]}`, `{"keys":["two"]}`

	It("close a route until the keys are known, which are then in one extension", func() {
		build := newBuild()
		first := build.Apply(filtered(api(), &model.RouteFilter{Service: "shop", Route: "guarded", Filter: "api"}))
		Expect(first.Conditions["service shop"]).To(Equal([]model.Condition{{
			Key: model.RouteKey("shop", "guarded"), Code: "Quarantined",
			Message: "the route has filter api, which cannot be enforced (the keys of its tokens are not known), and answers 503",
		}}))
		Expect(first.Snapshots["gw"].Providers).To(BeEmpty())

		known := build.Apply(model.Change{Revision: 2, Learned: said(one, "")})
		Expect(known.Conditions["service shop"]).To(BeEmpty())
		s := known.Snapshots["gw"]
		Expect(s.Providers).To(HaveLen(1))
		Expect(s.Hosts[0].Providers).To(Equal([]string{s.Providers[0].Name}))
		Expect(s.Providers[0].Name).To(MatchRegexp("^filter/api/[0-9a-f]{8}$"))
		Expect(s.Providers[0].Objects).To(HaveLen(1))
		Expect(string(s.Providers[0].Body.GetValue())).To(ContainSubstring("one"))

		other := build.Apply(model.Change{Revision: 3, Learned: said(two, "is away")})
		Expect(other.Conditions["service shop"]).To(BeEmpty(), "the last keys remain in use")
		Expect(other.Snapshots["gw"].Providers[0].Name).To(Equal(s.Providers[0].Name), "only the keys differ")
		Expect(string(other.Snapshots["gw"].Providers[0].Body.GetValue())).To(ContainSubstring("two"))
		Expect(other.Snapshots["gw"].Hosts[0].Version).To(Equal(s.Hosts[0].Version))
		Expect(other.Snapshots["gw"].Listeners).To(Equal(s.Listeners))
	})

	It("close a service, whose answer does not give the reason", func() {
		c := filtered(api(), &model.ServiceFilter{Service: "shop", Filter: "api"})
		c.Learned = said("", "the key set is answered with 503")
		found, conditions := statuses(c)
		Expect(found).To(Equal(map[string]uint32{"unavailable": 503}))
		Expect(conditions["service shop"]).To(Equal([]model.Condition{{
			Key: model.ServiceFilterKey("shop", "api"), Code: "Quarantined",
			Message: "filter api cannot be enforced: the keys of its tokens are not known: the key set is answered with 503. The service answers 503 and lets nobody in",
		}}))
	})

	It("ignore keys from another key set URL", func() {
		c := filtered(api(), &model.ServiceFilter{Service: "shop", Filter: "api"})
		c.Learned = said(one, "")
		c.Learned[model.FilterKey("api")][0].Source.JWKSURI = "https://them.test/keys"
		found, _ := statuses(c)
		Expect(found).To(Equal(map[string]uint32{"unavailable": 503}))
	})

	It("get another provider if they are checked differently", func() {
		name := func(config string) string {
			c := filtered(&model.Filter{Name: "api", Type: "http_filter_jwt", Config: model.JSON(config)}, &model.ServiceFilter{Service: "shop", Filter: "api"})
			c.Learned = said(one, "")
			return newBuild().Apply(c).Snapshots["gw"].Providers[0].Name
		}
		const base = `{"issuer":"us","jwks_uri":"https://us.test/keys"`
		names := map[string]bool{}
		for _, more := range []string{
			``, `,"audiences":["a"]`, `,"forward":true`, `,"from":{"header":"x-a"}`, `,"from":{"header":"x-a","prefix":"b"}`, `,"from":{"cookie":"x-a"}`,
			`,"from":{"query":"x-a"}`, `,"claim_headers":[{"claim":"sub","header":"x-user"}]`,
		} {
			names[name(base+more+"}")] = true
		}
		Expect(names).To(HaveLen(8))
		Expect(name(base+`,"require":[{"claim":"a","values":["b"]}]}`)).To(Equal(name(base+"}")), "required claims are not part of it")
	})
})
