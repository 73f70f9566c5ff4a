package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// faultRounds is how often each fault is caused: GATEHOUSE_TEST_FAULTS, or once in a
// run with the other tests.
func faultRounds() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_FAULTS")); err == nil {
		return n
	}
	return 1
}

// observed is how requests were answered during a fault, and the time from the end of
// the fault until the engine answered again.
type observed struct {
	answers map[string]int
	took    []time.Duration
	mended  []time.Duration
}

// observations are by fault; they become the table of docs/ratelimit-service.md.
type observations map[string]*observed

func (o observations) note(fault string, answers map[string]int, took []time.Duration, mended time.Duration) {
	seen := o[fault]
	if seen == nil {
		seen = &observed{answers: map[string]int{}}
		o[fault] = seen
	}
	for a, n := range answers {
		seen.answers[a] += n
	}
	seen.took = append(seen.took, took...)
	if mended > 0 {
		seen.mended = append(seen.mended, mended)
	}
}

func (o observations) report(l *lab) {
	for _, fault := range slices.Sorted(maps.Keys(o)) {
		seen := o[fault]
		slices.Sort(seen.took)
		slices.Sort(seen.mended)
		middle := func(d []time.Duration) string {
			if len(d) == 0 {
				return "-"
			}
			return fmt.Sprintf("%s (max %s)", ms(d[len(d)/2]), ms(d[len(d)-1]))
		}
		AddReportEntry(fault, fmt.Sprintf("answers %v in %s; right again after %s", seen.answers, middle(seen.took), middle(seen.mended)))
	}
	AddReportEntry("late", fmt.Sprintf("%d requests without a fault", l.late))
}

// mended waits until the engine answers every request: 20 of a client one after the
// other, and 20 four at a time. It returns the time from the end of the fault to the
// first answer.
func (l *lab) mended(back time.Time) (took time.Duration) {
	GinkgoHelper()
	from := l.newClient()
	end := time.Now().Add(time.Minute)
	for right := 0; ; {
		a := l.answer(from)
		Expect(time.Now()).To(BeTemporally("<", end), "the answer is %s", a)
		if right++; right == 1 {
			took = time.Since(back)
		}
		if !wasCounted(a) {
			right = 0
		}
		if right < 20 {
			continue
		}
		if at4, _, _ := l.asked4(20, from); at4["200"]+at4["429"] == 20 {
			return took
		}
		right = 0
	}
}

const (
	asksInFault = 20 // of each client
	countKept   = "429"
	countLost   = "200"
)

// suffer causes a fault and ends it. It reports the answers to a client that is over
// its limit during the fault, and to another client after it. It uses different clients
// because requests during the fault may be counted late.
func (l *lab) suffer(o observations, fault, want, after string, breaks, mends func()) {
	GinkgoHelper()
	By(fault)
	before, spent := l.limits(), l.limits()
	usual, took, late := l.asked4(asksInFault, spent)
	Expect(usual["429"]).To(Equal(asksInFault - late))
	o.note("all is well", usual, took, 0)
	breaks()
	answers, took, _ := l.asked4(asksInFault, spent)
	Expect(answers).To(Equal(map[string]int{want: asksInFault}))
	back := time.Now()
	mends()
	o.note(fault, answers, took, l.mended(back))
	l.limits()
	l.gets(before, after)
}

var _ = Describe("With the stock engine", func() {
	DescribeTable("a fault is handled as on_error says, and then the limits apply again", func(onError, want string) {
		l := stockLab(ownRates(5, onError))
		o := observations{}
		DeferCleanup(o.report, l)
		for range faultRounds() {
			l.suffer(o, "engine killed", want, countKept,
				func() { Expect(l.engine.Kill()).To(Succeed()) },
				func() { Expect(l.engine.Respawn()).To(Succeed()) })
			l.suffer(o, "Redis killed", want, countLost,
				func() { Expect(l.redis.Kill()).To(Succeed()) },
				func() { Expect(l.redis.Restart(limit())).To(Succeed()) })
			l.suffer(o, "Redis frozen", want, countKept,
				func() {
					DeferCleanup(l.redis.Thaw)
					Expect(l.redis.Freeze()).To(Succeed())
				},
				func() { Expect(l.redis.Thaw()).To(Succeed()) })
			l.suffer(o, "engine killed, and Gatehouse away when it comes back", want, countKept,
				func() {
					Expect(l.plane.Kill()).To(Succeed())
					Expect(l.engine.Kill()).To(Succeed())
					Expect(l.engine.Respawn()).To(Succeed())
				},
				func() { l.startPlane() })
		}
	},
		Entry("allow", "allow", "200 uncounted"),
		Entry("deny", "deny", "503"),
	)

	It("limits hold while Gatehouse is away, and a change from that time arrives afterwards", func() {
		l := stockLab(ownRates(5, "deny"))
		o := observations{}
		DeferCleanup(o.report, l)
		for i := range faultRounds() {
			Expect(l.plane.Kill()).To(Succeed())
			spent := l.limits()
			answers, took, late := l.asked4(asksInFault, spent)
			Expect(answers["429"]).To(Equal(asksInFault - late))

			By("changing the rate where neither the engine nor an Envoy can see it")
			elsewhere := slices.Clone(l.args)
			elsewhere[slices.Index(elsewhere, "--xds-addr")+1] = "127.0.0.1:0"
			other := start(nil, elsewhere...)
			most := 1000 + i
			a, err := other.API.Do(limit(), http.MethodPatch, "/globalconfig/rates", "application/json", `{"config":`+ownRates(most, "deny")+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			Expect(other.Stop(limit())).To(BeZero())
			l.gets(spent, "429")

			back := time.Now()
			l.startPlane()
			client := l.newClient()
			Eventually(l.rate).WithPolling(time.Millisecond).WithArguments(client).Should(Equal(strconv.Itoa(most)))
			o.note("Gatehouse away", answers, took, time.Since(back))
			l.gets(spent, "200") // its 29 counted requests are fewer
			l.change(ownRates(5, "deny"))
			l.limits()
		}
	})
})

// rate returns the limit in an answer; empty for none.
func (l *lab) rate(from string) (string, error) {
	resp, err := sendFrom(l.gw, from, http.MethodGet, "/", "", "")
	if err != nil {
		return "", err
	}
	most, _, _ := strings.Cut(resp.Header.Get("x-ratelimit-limit"), ",")
	return most, nil
}

var _ = Describe("With the engine of the gateway", func() {
	DescribeTable("a fault is handled as on_error says, and then the limits apply again", func(onError, want string) {
		l := ownLab(ownRates(5, onError))
		o := observations{}
		DeferCleanup(o.report, l)
		for range faultRounds() {
			l.suffer(o, "gatehouse frozen", want, countKept,
				func() {
					DeferCleanup(l.plane.Thaw)
					Expect(l.plane.Freeze()).To(Succeed())
				},
				func() { Expect(l.plane.Thaw()).To(Succeed()) })
			// Its Envoy stops with it.
			l.suffer(o, "gatehouse killed", "refused", countLost,
				func() {
					Expect(l.plane.Kill()).To(Succeed())
					Eventually(l.answer).WithArguments("").Should(Equal("refused"))
				},
				func() { l.startPlane() })
		}
	},
		Entry("allow", "allow", "200 uncounted"),
		Entry("deny", "deny", "503"),
	)
})
