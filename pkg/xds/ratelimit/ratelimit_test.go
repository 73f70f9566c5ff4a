package ratelimit_test

import (
	"errors"
	"math"
	"testing"
	"time"

	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
)

func TestRatelimit(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "ratelimit")
}

type rules = []model.RateLimitRule

func rate(unit string, n int64) *model.RateLimit {
	return &model.RateLimit{Unit: unit, RequestsPerUnit: n}
}

var _ = Describe("Configs", func() {
	It("contain what the global configs specify, in the order of their ids", func() {
		got := ratelimit.Configs([]*limits.Domain{
			limits.NewDomain(11, "edge.v1.x", rules{
				{Key: "remote_address", RateLimit: rate("second", 5)},
				{Key: "path", Value: "/api/*", ShadowMode: true, Descriptors: rules{
					{Key: "method", RateLimit: &model.RateLimit{Name: "n", Unlimited: true}},
				}},
			}),
			limits.NewDomain(46, "edge", nil),
		})
		Expect(got).To(HaveLen(2))
		for i, want := range []string{
			`{"name": "1a", "domain": "1a/edge"}`,
			`{"name": "b", "domain": "b/edge-v1-x", "descriptors": [
				{"key": "remote_address", "rateLimit": {"unit": "SECOND", "requestsPerUnit": 5}},
				{"key": "path", "value": "/api/*", "shadowMode": true, "descriptors": [
					{"key": "method", "rateLimit": {"name": "n", "unlimited": true}}]}]}`,
		} {
			message := &rlsconf.RateLimitConfig{}
			Expect(protojson.Unmarshal([]byte(want), message)).To(Succeed())
			Expect(proto.Equal(got[i], message)).To(BeTrue(), "%v", got[i])
		}
	})

	DescribeTable("accept every unit of the model and any number", func(unit string) {
		d := limits.NewDomain(1, "d", rules{{Key: "k", RateLimit: rate(unit, math.MaxUint32)}})
		Expect(ratelimit.Check(d)).To(Succeed())
		Expect(ratelimit.Configs([]*limits.Domain{d})[0].Descriptors[0].RateLimit.RequestsPerUnit).To(BeEquivalentTo(math.MaxUint32))
	}, func() (entries []TableEntry) {
		for _, unit := range model.RateLimitUnits() {
			entries = append(entries, Entry(unit, unit))
		}
		return entries
	}())
})

var _ = Describe("Check", func() {
	k := model.RateLimitRule{Key: "k", RateLimit: rate("second", 1)}

	DescribeTable("accepts", func(list rules) {
		Expect(ratelimit.Check(limits.NewDomain(1, "shop.example.com", list))).To(Succeed())
	},
		Entry("no descriptors", nil),
		Entry("a descriptor without a rate", rules{{Key: "k"}}),
		Entry("a rate of zero", rules{{Key: "k", RateLimit: rate("year", 0)}}),
		Entry("no limit", rules{{Key: "k", RateLimit: &model.RateLimit{Unlimited: true}}}),
		Entry("a key in two branches", rules{k, {Key: "x", Descriptors: rules{k}}}),
		Entry("a value, a wildcard and a bare key", rules{k, {Key: "k", Value: "a"}, {Key: "k", Value: "a*"}}),
	)

	DescribeTable("reports where and why an engine would refuse", func(domain, field, message string, list rules) {
		err := ratelimit.Check(limits.NewDomain(1, domain, list))
		var e *model.Error
		Expect(errors.As(err, &e)).To(BeTrue())
		Expect(e.Kind).To(Equal(model.Unworkable))
		Expect(e.Fields).To(Equal([]model.FieldError{{Field: field, Message: message}}))
	},
		Entry("no domain", "", "config.domain", "config file cannot have empty domain", rules{k}),
		Entry("no key", "d", "config.descriptors[1]", "descriptor has empty key", rules{k, {}}),
		Entry("no unit", "d", "config.descriptors[0]", "invalid rate limit unit 'UNKNOWN'", rules{{Key: "k", RateLimit: rate("", 1)}}),
		Entry("an invented unit", "d", "config.descriptors[0]", "invalid rate limit unit 'UNKNOWN'",
			rules{{Key: "k", RateLimit: rate("fortnight", 1)}}),
		Entry("a unit without a limit", "d", "config.descriptors[2]", "should not specify rate limit unit when unlimited",
			rules{k, {Key: "l"}, {Key: "m", RateLimit: &model.RateLimit{Unlimited: true, Unit: "day"}}, {Key: "n"}}),
		Entry("the same twice", "d", "config.descriptors[2]", "duplicate descriptor composite key 'd.k'", rules{k, {Key: "l"}, k, k}),
		Entry("duplicate after joining", "d", "config.descriptors[1]", "duplicate descriptor composite key 'd.a_b'",
			rules{{Key: "a", Value: "b"}, {Key: "a_b"}}),
		Entry("the same twice, nested", "d", "config.descriptors[1].descriptors[0].descriptors[1]",
			"duplicate descriptor composite key 'd.x.y_z.k'",
			rules{k, {Key: "x", Descriptors: rules{{Key: "y", Value: "z", Descriptors: rules{k, k}}}}}),
	)

	It("has readable messages", func() {
		Expect(ratelimit.Check(limits.NewDomain(1, "edge", rules{k, k}))).To(MatchError(
			"the rate-limit engine refuses this configuration: " +
				"config.descriptors[1]: duplicate descriptor composite key 'edge.k' " +
				"(a key and its value are joined with _, so that key a_b is the same as key a with value b)"))
	})

	It("finds the fault among many quickly: with few checks of the whole, not one for each", func() {
		many := make(rules, 3_000)
		for i := range many {
			many[i] = model.RateLimitRule{Key: "k", Value: string(rune('a'+i%26)) + string(rune(i+1000)), RateLimit: rate("day", 1)}
		}
		d := limits.NewDomain(1, "d", many)
		look := time.Hour
		for range 3 {
			start := time.Now()
			Expect(ratelimit.Check(d)).To(Succeed())
			look = min(look, time.Since(start))
		}
		many[2_999] = many[0]
		start := time.Now()
		Expect(ratelimit.Check(d)).To(MatchError(ContainSubstring("config.descriptors[2999]: duplicate")))
		Expect(time.Since(start)/look).To(BeNumerically("<", 200), "12 checks by halves, 1500 one by one")
	})

	It("turns any panic of the loader into an error", func() {
		_, err := ratelimit.Load(&rlsconf.RateLimitConfig{Name: "n", Domain: "d", Descriptors: []*rlsconf.RateLimitDescriptor{nil}}, nil)
		Expect(err).To(MatchError(ContainSubstring("nil pointer")))
	})
})
