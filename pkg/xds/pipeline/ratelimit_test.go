package pipeline_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

var _ = Describe("The rate limits of a build", func() {
	It("are known from the first change, even if there are none: an engine opens its ports with them", func() {
		build, err := pipeline.NewBuild(compile.Settings{})
		Expect(err).NotTo(HaveOccurred())
		Expect(build.Apply(model.Change{}).RateLimits).To(And(BeEmpty(), Not(BeNil())))
		Expect(build.Apply(model.Change{Revision: 1}).RateLimits).To(BeNil())
	})

	rates := func(id int64, name, config string) model.Entry {
		return model.Entry{Key: model.GlobalConfigKey(name), Object: &model.GlobalConfig{
			ID: id, Name: name, Type: model.GlobalConfigRateLimit, Config: model.JSON(config),
		}}
	}

	It("leave out what the engine would refuse, and report it", func() {
		build, err := pipeline.NewBuild(compile.Settings{RateLimitSocket: "/run/engine.sock"})
		Expect(err).NotTo(HaveOccurred())
		result := build.Apply(model.Change{Revision: 1, Full: true, Entries: []model.Entry{
			rates(35, "bad", `{"domain":"edge","descriptors":[{"key":"a"},{"key":"a"}]}`),
			rates(36, "good", `{"domain":"edge","shadow":true,"descriptors":[{"key":"a","rate_limit":{"unit":"day","requests_per_unit":5}}]}`),
		}})
		Expect(result.RateLimits).To(HaveLen(1))
		Expect(result.RateLimits[0].Wire()).To(Equal("10/edge"), "36 in base 36")
		Expect(result.RateLimits[0].Descriptors[0].ShadowMode).To(BeTrue())
		Expect(result.Conditions["rate limits"]).To(HaveLen(1))
		Expect(result.Conditions["rate limits"][0].Code).To(Equal("Quarantined"))
		Expect(result.Conditions["rate limits"][0].Key).To(Equal(model.GlobalConfigKey("bad")))
	})

	It("report when no engine counts", func() {
		build, err := pipeline.NewBuild(compile.Settings{})
		Expect(err).NotTo(HaveOccurred())
		result := build.Apply(model.Change{Revision: 1, Full: true, Entries: []model.Entry{rates(1, "rates", `{"domain":"edge"}`)}})
		Expect(result.Conditions["rate limits"]).To(HaveLen(1))
		Expect(result.Conditions["rate limits"][0].Code).To(Equal("NoRateLimitEngine"))
	})

	It("change no listener and no cluster when the first come and the last go", func() {
		b, err := pipeline.NewBuild(compile.Settings{RateLimitSocket: "/run/engine.sock"})
		Expect(err).NotTo(HaveOccurred())
		limit := func(name, config string) model.Object {
			return &model.Filter{Name: name, Type: model.FilterRateLimit, Config: model.JSON(config)}
		}
		first := b.Apply(filtered(limit("stated", `{"per":"api_client","limit":"5/minute"}`), limit("counted", `{"descriptors":[{"remote_address":"x"}]}`))).Snapshots["gw"]
		// expect applies an entry, and expects another version of these hosts and extensions.
		expect := func(e model.Entry, changed ...string) {
			GinkgoHelper()
			s := b.Apply(model.Change{Revision: b.Revision() + 1, Entries: []model.Entry{e}}).Snapshots["gw"]
			Expect(s.Listeners[0].Version).To(Equal(first.Listeners[0].Version))
			Expect(s.Clusters).To(Equal(first.Clusters))
			var got []string
			if s.Hosts[0].Version != first.Hosts[0].Version {
				got = append(got, s.Hosts[0].Name)
			}
			for i, e := range s.Extensions {
				if e.Version != first.Extensions[i].Version {
					got = append(got, e.Name)
				}
			}
			Expect(got).To(Equal(changed))
			first = s
		}
		link := func(filter string) model.Object {
			return &model.RouteFilter{ID: 99, Service: "shop", Route: "guarded", Filter: filter}
		}
		attached := func(filter string) model.Entry { return model.Entry{Key: link(filter).Key(), Object: link(filter)} }
		detached := func(filter string) model.Entry { return model.Entry{Key: link(filter).Key()} }
		own := []string{"envoy.filters.http.ratelimit", "envoy.filters.http.ratelimit_claims"}

		expect(attached("stated"), "shop")
		Expect(b.Reach([]model.Key{link("stated").Key()})["gw"].Listeners).To(BeFalse())
		expect(detached("stated"), "shop")
		expect(attached("counted"), "shop")
		expect(rates(1, "rates", `{"domain":"edge"}`), own...)
		expect(rates(1, "rates", `{"domain":"edge","on_error":"deny","headers":false,"status":503}`), own...)
		expect(model.Entry{Key: model.GlobalConfigKey("rates")}, own...)
		expect(detached("counted"), "shop")
	})
})
