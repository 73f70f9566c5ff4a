package embedded_test

import (
	"context"
	"math"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/embedded"
)

var _ = Describe("A limit", func() {
	var c *clock
	BeforeEach(func() { c = newClock() })

	DescribeTable("allows its number of requests in each window of its unit", func(unit string, length time.Duration) {
		// A window starts when Unix time is a multiple of its length.
		c.advance(length - time.Unix(noon, 0).Sub(time.Unix(0, 0))%length)
		e := loaded(c, domainOf("1/edge", perUnit("remote_address", "", unit, 5)))
		r := ask("1/edge", entry("remote_address", "10.0.0.1"))
		Expect(passes(e, 7, r)).To(Equal("1111100"))
		c.advance(length - time.Nanosecond)
		Expect(passes(e, 2, r)).To(Equal("00"))
		c.advance(time.Nanosecond)
		Expect(passes(e, 7, r)).To(Equal("1111100"))
	},
		Entry("second", "second", time.Second),
		Entry("minute", "minute", time.Minute),
		Entry("hour", "hour", time.Hour),
		Entry("day", "day", 24*time.Hour),
		Entry("week", "week", 7*24*time.Hour),
		Entry("month", "month", 30*24*time.Hour),
		Entry("year", "year", 365*24*time.Hour),
	)

	DescribeTable("comes from the most specific rule, and counts each value separately", func(want string, keysAndValues ...string) {
		e := loaded(c, domainOf("1/edge",
			perUnit("path", "", "hour", 1),
			perUnit("path", "/api/*", "hour", 2),
			perUnit("path", "/api/a*", "hour", 3),
			perUnit("path", "/api/a", "hour", 4),
			level("tenant", "",
				perUnit("path", "", "hour", 1),
				perUnit("path", "/free", "hour", 2),
			),
			perUnit("closed", "", "hour", 0),
			level("tenant", "gold", level("path", "")),
		))
		Expect(passes(e, 5, ask("1/edge", entry(keysAndValues...)))).To(Equal(want))
	},
		Entry("a bare key", "10000", "path", "/x"),
		Entry("a wildcard", "11000", "path", "/api/b"),
		Entry("the first of two wildcards", "11000", "path", "/api/ab"),
		Entry("an exact value over a wildcard", "11110", "path", "/api/a"),
		Entry("a nested bare key", "10000", "tenant", "t1", "path", "/x"),
		Entry("a nested exact value", "11000", "tenant", "t1", "path", "/free"),
		Entry("a nested rule without a rate", "11111", "tenant", "gold", "path", "/free"),
		Entry("a shorter descriptor than the rule", "11111", "tenant", "t1"),
		Entry("a longer descriptor than the rule", "11111", "path", "/x", "tenant", "t1"),
		Entry("no rule", "11111", "method", "GET"),
		Entry("a rate of zero", "00000", "closed", "x"),
	)

	It("counts values separately, whatever characters they contain", func() {
		k := perUnit("k", "", "hour", 1)
		k.Descriptors = []*rlsconf.RateLimitDescriptor{perUnit("k", "", "hour", 1)}
		e := loaded(c,
			domainOf("1/p", perUnit("q_k", "", "hour", 1), k),
			domainOf("1/p_q", perUnit("k", "", "hour", 1)),
			domainOf("1/pk", perUnit("k", "", "hour", 1)))
		for _, r := range []*rlsv3.RateLimitRequest{
			ask("1/p", entry("q_k", "v")), ask("1/p_q", entry("k", "v")),
			ask("1/p", entry("k", "v_k_v")), ask("1/p", entry("k", "v", "k", "v")),
			ask("1/p", entry("k", "")), ask("1/p", entry("k", "\x00")), ask("1/p", entry("k", "\x01k")),
			// the same values in another domain, and what is the same when it is put together
			ask("1/p", entry("k", "v")), ask("1/p", entry("k", "wk")), ask("1/p", entry("k", "w", "k", "")),
			ask("1/p", entry("k", "kx")), ask("1/pk", entry("k", "x")),
		} {
			Expect(passes(e, 2, r)).To(Equal("10"), "%v", r)
		}
	})

	It("counts each unit separately, even if a limit changes and changes back", func() {
		e := loaded(c, domainOf("1/p", perUnit("k", "", "hour", 1)))
		Expect(passes(e, 2, ask("1/p", entry("k", "v")))).To(Equal("10"))
		Expect(e.Load([]*rlsconf.RateLimitConfig{domainOf("1/p", perUnit("k", "", "minute", 1))})).To(Succeed())
		Expect(passes(e, 2, ask("1/p", entry("k", "v")))).To(Equal("10"))
		Expect(e.Load([]*rlsconf.RateLimitConfig{domainOf("1/p", perUnit("k", "", "hour", 1))})).To(Succeed())
		Expect(passes(e, 2, ask("1/p", entry("k", "v")))).To(Equal("00"))
	})

	It("does not exist for an unknown domain", func() {
		e := loaded(c, domainOf("1/edge", perUnit("k", "", "hour", 0)))
		response := answer(e, ask("2/edge", entry("k", "v"), entry("k", "v")))
		Expect(response.GetOverallCode()).To(Equal(rlsv3.RateLimitResponse_OK))
		Expect(response.GetStatuses()).To(HaveLen(2))
		Expect(response.GetStatuses()[1].GetCode()).To(Equal(rlsv3.RateLimitResponse_OK))
	})

	It("allows everything if it is unlimited, and says so", func() {
		open := level("remote_address", "10.0.0.1")
		open.RateLimit = &rlsconf.RateLimitPolicy{Unlimited: true}
		e := loaded(c, domainOf("1/edge", open, perUnit("remote_address", "", "hour", 1)))
		s := answer(e, ask("1/edge", entry("remote_address", "10.0.0.1"))).GetStatuses()[0]
		Expect(s.GetLimitRemaining()).To(BeEquivalentTo(math.MaxUint32))
		Expect(s.GetCurrentLimit()).To(BeNil())
		Expect(passes(e, 3, ask("1/edge", entry("remote_address", "10.0.0.2")))).To(Equal("100"))
	})

	It("allows in shadow mode what it counts as over the limit", func() {
		shadow := perUnit("k", "", "hour", 2)
		shadow.ShadowMode = true
		e := loaded(c, domainOf("1/edge", shadow))
		Expect(passes(e, 5, ask("1/edge", entry("k", "v")))).To(Equal("11111"))
		Expect(e.Stats()).To(Equal([]embedded.Stat{{Domain: "1/edge", Key: "k", Hits: 5, Over: 3, Near: 1, Shadow: 3}}))
		Expect(e.Top(1)).To(Equal([]embedded.Limited{{Domain: "1/edge", Key: "k", Value: "k=v", Shadow: true, Count: 3}}))
	})

	It("answers for each descriptor, and counts all of them", func() {
		e := loaded(c, domainOf("1/edge", perUnit("a", "", "minute", 1), perUnit("b", "", "hour", 3)))
		c.advance(20*time.Second + time.Millisecond)
		r := ask("1/edge", entry("a", "x"), entry("b", "x"), entry("c", "x"))
		answer(e, r)
		response := answer(e, r)
		Expect(response.GetOverallCode()).To(Equal(rlsv3.RateLimitResponse_OVER_LIMIT))
		a, b, none := response.GetStatuses()[0], response.GetStatuses()[1], response.GetStatuses()[2]
		Expect(a.GetCode()).To(Equal(rlsv3.RateLimitResponse_OVER_LIMIT))
		Expect(a.GetCurrentLimit().GetRequestsPerUnit()).To(BeEquivalentTo(1))
		Expect(a.GetCurrentLimit().GetUnit()).To(Equal(rlsv3.RateLimitResponse_RateLimit_MINUTE))
		Expect(a.GetLimitRemaining()).To(BeZero())
		Expect(a.GetDurationUntilReset().AsDuration()).To(Equal(40 * time.Second))
		Expect(b.GetCode()).To(Equal(rlsv3.RateLimitResponse_OK))
		Expect(b.GetCurrentLimit().GetRequestsPerUnit()).To(BeEquivalentTo(3))
		Expect(b.GetLimitRemaining()).To(BeEquivalentTo(1))
		Expect(b.GetDurationUntilReset().AsDuration()).To(Equal(time.Hour - 20*time.Second))
		Expect(none.GetCode()).To(Equal(rlsv3.RateLimitResponse_OK))
		Expect(none.GetCurrentLimit()).To(BeNil())
	})

	It("adds as many hits as the request, or one of its descriptors, specifies", func() {
		e := loaded(c, domainOf("1/edge", perUnit("k", "", "hour", 10)))
		remaining := func(perRequest uint32, perDescriptor *wrapperspb.UInt64Value) (uint32, rlsv3.RateLimitResponse_Code) {
			r := ask("1/edge", &commonv3.RateLimitDescriptor{Entries: entry("k", "v").GetEntries(), HitsAddend: perDescriptor})
			r.HitsAddend = perRequest
			s := answer(e, r).GetStatuses()[0]
			return s.GetLimitRemaining(), s.GetCode()
		}
		for _, step := range []struct {
			perRequest    uint32
			perDescriptor *wrapperspb.UInt64Value
			want          uint32
			code          rlsv3.RateLimitResponse_Code
		}{
			{0, nil, 9, rlsv3.RateLimitResponse_OK},
			{4, nil, 5, rlsv3.RateLimitResponse_OK},
			{4, wrapperspb.UInt64(2), 3, rlsv3.RateLimitResponse_OK},
			{4, wrapperspb.UInt64(0), 3, rlsv3.RateLimitResponse_OK}, // looks and counts nothing
			{5, nil, 0, rlsv3.RateLimitResponse_OVER_LIMIT},
			{0, wrapperspb.UInt64(math.MaxUint64), 0, rlsv3.RateLimitResponse_OVER_LIMIT},
			{0, wrapperspb.UInt64(math.MaxUint64), 0, rlsv3.RateLimitResponse_OVER_LIMIT},
			{1, nil, 0, rlsv3.RateLimitResponse_OVER_LIMIT},
		} {
			left, code := remaining(step.perRequest, step.perDescriptor)
			Expect(left).To(Equal(step.want), "%v", step)
			Expect(code).To(Equal(step.code), "%v", step)
		}
	})

	It("is left out if another replaces it", func() {
		general, special := perUnit("ip", "", "hour", 1), perUnit("key", "", "hour", 3)
		general.RateLimit.Name = "general"
		special.RateLimit.Replaces = []*rlsconf.RateLimitReplace{{Name: "general"}}
		e := loaded(c, domainOf("1/edge", general, special))
		Expect(passes(e, 4, ask("1/edge", entry("ip", "x"), entry("key", "x")))).To(Equal("1110"))
		Expect(passes(e, 2, ask("1/edge", entry("ip", "x")))).To(Equal("10"))
	})

	It("may be part of a request, in any existing unit", func() {
		e := loaded(c, domainOf("1/edge", perUnit("k", "", "hour", 1)))
		own := func(unit typev3.RateLimitUnit) *rlsv3.RateLimitRequest {
			d := entry("k", "v")
			d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 2, Unit: unit}
			return ask("1/edge", entry("k", "w"), d)
		}
		e.ShouldRateLimit(context.Background(), own(typev3.RateLimitUnit_MINUTE))
		Expect(e.Stats()).To(ContainElement(embedded.Stat{Domain: "1/edge", Key: "(other)", Hits: 1}))
		for _, unit := range []typev3.RateLimitUnit{typev3.RateLimitUnit_UNKNOWN, 8, 99, -1} {
			_, err := e.ShouldRateLimit(context.Background(), own(unit))
			Expect(status.Code(err)).To(Equal(codes.InvalidArgument))
			Expect(err).To(MatchError(ContainSubstring("invalid rate limit unit")))
		}
		Expect(e.Stats()[1].Hits).To(BeEquivalentTo(1), "a refused request counts nothing")
	})

	It("refuses what it cannot answer, and still works afterwards", func() {
		empty := embedded.New(embedded.Options{})
		_, err := empty.ShouldRateLimit(context.Background(), ask("1/edge", entry("k", "v")))
		Expect(status.Code(err)).To(Equal(codes.Unavailable))
		Expect(err).To(MatchError(ContainSubstring("no rate limit configuration loaded")))
		Expect(empty.Stats()).To(BeEmpty())

		e := loaded(c, domainOf("1/edge", perUnit("k", "", "hour", 1)))
		for want, r := range map[string]*rlsv3.RateLimitRequest{
			"rate limit domain must not be empty":          ask("", entry("k", "v")),
			"rate limit descriptor list must not be empty": ask("1/edge"),
			"the rate limit engine failed at this request": ask("1/edge", &commonv3.RateLimitDescriptor{
				Entries: []*commonv3.RateLimitDescriptor_Entry{nil},
			}),
		} {
			_, err := e.ShouldRateLimit(context.Background(), r)
			Expect(err).To(MatchError(ContainSubstring(want)))
		}
		Expect(passes(e, 2, ask("1/edge", entry("k", "v")))).To(Equal("10"))
	})
})
