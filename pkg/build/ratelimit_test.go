package build_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/build"
	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

var _ = Describe("The rate limits of a build", func() {
	It("are known from the first change, even if there are none: an engine opens its ports with them", func() {
		build, err := build.NewBuild(compile.Settings{})
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
		build, err := build.NewBuild(compile.Settings{RateLimitSocket: "/run/engine.sock"})
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
		build, err := build.NewBuild(compile.Settings{})
		Expect(err).NotTo(HaveOccurred())
		result := build.Apply(model.Change{Revision: 1, Full: true, Entries: []model.Entry{rates(1, "rates", `{"domain":"edge"}`)}})
		Expect(result.Conditions["rate limits"]).To(HaveLen(1))
		Expect(result.Conditions["rate limits"][0].Code).To(Equal("NoRateLimitEngine"))
	})
})
