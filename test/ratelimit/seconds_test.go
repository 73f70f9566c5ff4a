package ratelimit_test

import (
	"fmt"
	"os"
	"strconv"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
)

// windows is how many seconds are compared: one for every 50 requests of
// GATEHOUSE_TEST_REQUESTS, or a number that suits a run with the other tests.
func windows() int {
	if os.Getenv("GATEHOUSE_TEST_REQUESTS") != "" {
		return max(rounds()/50, 4)
	}
	return 4
}

// lane is a domain whose counters can start over, in both engines: every descriptor begins
// with (run, number), and each number is counted separately. Whatever its other rules are,
// one of its rules is often met.
type lane struct {
	*limits.Domain
	run int
}

func newLane(g generator, id int) *lane {
	GinkgoHelper()
	often := model.RateLimitRule{Key: "often", RateLimit: &model.RateLimit{Unit: "second", RequestsPerUnit: 2}}
	l := &lane{Domain: limits.NewDomain(int64(id), "edge", []model.RateLimitRule{{Key: "run", Descriptors: append(g.rules(1), often)}})}
	Expect(ratelimit.Check(l.Domain)).To(Succeed())
	return l
}

// request returns a request that g makes, in the current run.
func (l *lane) request(g generator) func() *ratelimitv3.RateLimitRequest {
	made := g.request([]*limits.Domain{l.Domain})
	if g.IntN(4) == 0 {
		made.Descriptors = append(made.Descriptors, &commonv3.RateLimitDescriptor{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "often", Value: "x"}},
		})
	}
	return func() *ratelimitv3.RateLimitRequest {
		r := &ratelimitv3.RateLimitRequest{Domain: made.GetDomain(), HitsAddend: made.GetHitsAddend()}
		for _, d := range made.GetDescriptors() {
			run := &commonv3.RateLimitDescriptor_Entry{Key: "run", Value: strconv.Itoa(l.run)}
			r.Descriptors = append(r.Descriptors, &commonv3.RateLimitDescriptor{
				Entries: append([]*commonv3.RateLimitDescriptor_Entry{run}, d.GetEntries()...),
			})
		}
		return r
	}
}

// untilEdge waits until a second is nearly over, so that the next requests are on both
// sides of the edge.
func untilEdge(ctx SpecContext) {
	GinkgoHelper()
	const before = 30 * time.Millisecond
	now := time.Now().Add(before)
	timer := time.NewTimer(now.Truncate(time.Second).Add(time.Second).Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		Fail("the time of the spec is over")
	}
}

// resets returns verdict with the end of each window, which is exact for a known time.
func resets(r *ratelimitv3.RateLimitResponse) string {
	text := verdict(r)
	for _, s := range r.GetStatuses() {
		text += fmt.Sprintf("; %d s", s.GetDurationUntilReset().GetSeconds())
	}
	return text
}

// The stock engine uses the clock of this machine, and the embedded one receives the time.
// If a call of the stock engine starts and ends in the same second, it was counted in that
// second: the embedded one receives the same request at the same time. Otherwise an edge
// fell into the call, and it is not known on which side it was counted; then the domain's
// counters start over, and the request is sent again. So nothing is compared that could
// differ by chance, and nothing is left out.
var _ = Describe("The embedded engine in windows of a second and a minute", func() {
	It("answers like the stock one with Redis", func(ctx SpecContext) {
		watchGoroutines()
		g := newGenerator("second", "second", "second", "minute", "hour")
		var lanes []*lane
		var domains []*limits.Domain
		for i := range 100 {
			lanes = append(lanes, newLane(g, i))
			domains = append(domains, lanes[i].Domain)
		}
		_, stock := startStock(ctx, serve(domains))
		var clock time.Time
		own := startOwn(domains, func() time.Time { return clock })

		each := rounds() / windows()
		var edges, again int
		overAt := map[string]int64{} // when a value was over its limit of a second
		seconds := map[int64]bool{}
		for step := range windows() {
			untilEdge(ctx)
			for i := range each {
				// The same domains for some seconds.
				l := lanes[(step/4+g.IntN(max(2, each/50)))%len(lanes)]
				request := l.request(g)
				for tries := 1; ; tries++ {
					r := request()
					before := time.Now().Unix()
					theirs, err := stock.ShouldRateLimit(ctx, r)
					Expect(err).NotTo(HaveOccurred())
					if time.Now().Unix() != before {
						Expect(tries).To(BeNumerically("<", 10), "a second began during every call")
						edges++
						l.run++
						continue
					}
					clock = time.Unix(before, 0)
					ours, err := own.ShouldRateLimit(ctx, r)
					Expect(err).NotTo(HaveOccurred())
					Expect(resets(ours)).To(Equal(resets(theirs)), "request %d of window %d, at %d: %s", i, step, before, r)
					seconds[before] = true
					again += renewed(overAt, before, r, ours)
					break
				}
			}
		}
		// If a window started late, the next one may end before the edge, in the same
		// second.
		Expect(len(seconds)).To(BeNumerically(">=", windows()/2))
		Expect(again).To(BeNumerically(">", 0), "no value that was over its limit passed in a later second")
		AddReportEntry("parity of windows", fmt.Sprintf(
			"%d requests in %d seconds answered alike; %d times a value passed again after its second; %d requests sent again, at an edge",
			windows()*each, len(seconds), again, edges))
	}, SpecTimeout(30*time.Minute))
})

// renewed counts the values of a request that are allowed, and were over their limit of a
// second in an earlier one.
func renewed(overAt map[string]int64, now int64, r *ratelimitv3.RateLimitRequest, answer *ratelimitv3.RateLimitResponse) (n int) {
	for i, s := range answer.GetStatuses() {
		if s.GetCurrentLimit().GetUnit() != ratelimitv3.RateLimitResponse_RateLimit_SECOND {
			continue
		}
		value := fmt.Sprint(r.GetDomain(), r.GetDescriptors()[i])
		switch at, over := overAt[value]; {
		case s.GetCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT:
			overAt[value] = now
		case over && at < now:
			delete(overAt, value)
			n++
		}
	}
	return n
}
