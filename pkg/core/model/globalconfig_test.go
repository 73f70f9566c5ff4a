package model_test

import (
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func limitsOf(config string) *model.GlobalConfig {
	return &model.GlobalConfig{Name: "rates", Type: model.GlobalConfigRateLimit, Config: model.JSON(config)}
}

var _ = Describe("A global config", func() {
	It("has a name, a type and tags as other objects have", func() {
		g := &model.GlobalConfig{Name: "a b", Type: "", Tags: model.Tags{"a\n"}}
		Expect(fields(g.Validate())).To(Equal([]string{"globalconfig_name", "globalconfig_type", "tags"}))
		g = limitsOf(`{"domain":"d"}`)
		g.Name = "dump"
		Expect(g.Validate()).To(BeEmpty(), "no call has its name")
	})

	It("that is of an unknown type, or not an object, names nothing and says what is wrong", func() {
		g := &model.GlobalConfig{Name: "g", Type: "x", Config: `{}`}
		Expect(g.Names()).To(BeEmpty())
		parsed := g.Parse()
		Expect(parsed.Spec).To(BeNil())
		Expect(parsed.Fault).To(MatchError(ContainSubstring(`globalconfig_type "x" is not one of globalconfig_ratelimit, globalconfig_oauth`)))
		Expect(limitsOf(`[]`).Parse().Fault).To(MatchError(ContainSubstring("config must be a JSON object")))
	})

	It("has no secret", func() {
		Expect(limitsOf(`{"domain":"d"}`).Seal(nil, nil)).To(Succeed())
		g := limitsOf(`{"domain":"sealed:v1:d"}`)
		Expect(g.Seal(nil, limitsOf(`{"domain":"d"}`))).To(MatchError(ContainSubstring("config.domain: is not a secret; write it in plain text")))
		Expect(g.Redact().(*model.GlobalConfig).Config).To(BeEquivalentTo(`{"domain":"<redacted>"}`))
		Expect(g.MapSealed(func(sealed, place string) (string, error) { return sealed + " " + place, nil })).To(Succeed())
		Expect(g.Config).To(BeEquivalentTo(`{"domain":"sealed:v1:d globalconfig/rates/domain"}`))
	})
})

var _ = Describe("The limits of a domain", func() {
	DescribeTable("are checked", func(config string, want ...string) {
		got := []string{}
		for _, e := range limitsOf(config).Validate() {
			got = append(got, strings.TrimPrefix(e.Field, "config.")+" "+e.Message)
		}
		Expect(got).To(Equal(want))
	},
		Entry("with everything", `{"domain":"d","on_error":"deny","headers":false,"status":429,"shadow":true,"descriptors":[
			{"key":"k","value":"v","shadow_mode":true,"rate_limit":{"name":"n","unit":"second","requests_per_unit":0}},
			{"key":"l","rate_limit":{"unit":"year","requests_per_unit":4294967295},"descriptors":[{"key":"m","rate_limit":{"unlimited":true}}]}]}`),
		Entry("with on_error allow", `{"domain":"d","on_error":"allow"}`),
		Entry("with an unknown on_error", `{"domain":"d","on_error":"close"}`, `on_error "close" is not one of allow, deny`),
		Entry("with a field of another type, and nothing more is said", `{"domain":7}`, "domain must be a string, not a number"),
		Entry("without a domain", `{}`, "domain is required"),
		Entry("with the domain of filters", `{"domain":"stated-by-filters"}`,
			`domain "stated-by-filters" is the domain of filters that state their own limit; choose another name`),
		Entry("with the lowest status", `{"domain":"d","status":400}`),
		Entry("with a lower status", `{"domain":"d","status":399}`, "status 399 is not between 400 and 599"),
		Entry("with the highest status", `{"domain":"d","status":511}`),
		Entry("with a status that Envoy cannot send", `{"domain":"d","status":599}`, "status 599 is not a status that Envoy knows"),
		Entry("with a higher status", `{"domain":"d","status":600}`, "status 600 is not between 400 and 599"),
		Entry("without keys", `{"domain":"d","descriptors":[{"key":"k"},{"descriptors":[{"key":"l"},{}]}]}`,
			"descriptors[1].key is required", "descriptors[1].descriptors[1].key is required"),
		Entry("without a unit", `{"domain":"d","descriptors":[{"key":"k","rate_limit":{"requests_per_unit":1}}]}`,
			`descriptors[0].rate_limit.unit "" is not one of second, minute, hour, day, week, month, year`),
		Entry("unlimited with a unit", `{"domain":"d","descriptors":[{"key":"k","rate_limit":{"unlimited":true,"unit":"second"}}]}`,
			"descriptors[0].rate_limit.unlimited cannot be combined with unit or requests_per_unit"),
		Entry("unlimited with a number", `{"domain":"d","descriptors":[{"key":"k","rate_limit":{"unlimited":true,"requests_per_unit":1}}]}`,
			"descriptors[0].rate_limit.unlimited cannot be combined with unit or requests_per_unit"),
		Entry("with numbers out of range", `{"domain":"d","descriptors":[
			{"key":"k","rate_limit":{"unit":"second","requests_per_unit":-1}},{"key":"l","rate_limit":{"unit":"second","requests_per_unit":4294967296}}]}`,
			"descriptors[0].rate_limit.requests_per_unit -1 is not between 0 and 4294967295",
			"descriptors[1].rate_limit.requests_per_unit 4294967296 is not between 0 and 4294967295"),
	)

	It("may be answered with the statuses above 399 of Envoy's API, and no others", func() {
		var known []int
		for status := 1; status < 700; status++ {
			g := limitsOf(fmt.Sprintf(`{"domain":"d","status":%d}`, status))
			if spec := g.Parse().Spec.(*model.RateLimitConfig); len(g.Validate()) == 0 {
				Expect(spec.Status).To(Equal(status))
				known = append(known, status)
			} else {
				Expect(spec.Status).To(BeZero(), "Envoy would refuse it")
			}
		}
		Expect(known).To(Equal([]int{ // type.v3.StatusCode
			400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 423, 424, 426, 428, 429, 431,
			500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511,
		}))
	})

	DescribeTable("count without limiting", func(shadow, want string) {
		g := limitsOf(`{"domain":"d","shadow":` + shadow + `,"descriptors":[{"key":"k","descriptors":[{"key":"l"},{"key":"m"}]},{"key":"n","shadow_mode":true}]}`)
		Expect(json.Marshal(g.Parse().Spec.(*model.RateLimitConfig).Descriptors)).To(MatchJSON(want))
	},
		Entry("in all", "true",
			`[{"key":"k","shadow_mode":true,"descriptors":[{"key":"l","shadow_mode":true},{"key":"m","shadow_mode":true}]},{"key":"n","shadow_mode":true}]`),
		Entry("where they say so", "false", `[{"key":"k","descriptors":[{"key":"l"},{"key":"m"}]},{"key":"n","shadow_mode":true}]`),
	)
})
