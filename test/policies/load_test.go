package policies_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// number returns an environment variable as a number, or n.
func number(name string, n int) int {
	set, _ := strconv.Atoi(os.Getenv(name))
	return cmp.Or(set, n)
}

// phases are the right answers, one after the other.
type phases struct {
	sync.Mutex
	list []phase
}

// phase is a time with its right answers: both during a switch.
type phase struct {
	from  time.Time
	right []string
}

func (p *phases) begin(right ...string) {
	p.Lock()
	defer p.Unlock()
	p.list = append(p.list, phase{time.Now(), right})
}

// allows reports whether an answer was right at some time during its request.
func (p *phases) allows(said string, sent, done time.Time) bool {
	p.Lock()
	defer p.Unlock()
	for i, ph := range p.list {
		ended := i+1 < len(p.list) && p.list[i+1].from.Before(sent)
		if !ended && ph.from.Before(done) && slices.Contains(ph.right, said) {
			return true
		}
	}
	return false
}

// switchUnderLoad attaches and detaches the filter under load.
func switchUnderLoad(p policy) {
	GinkgoHelper()
	w := newWorld(p)
	before := w.listeners()
	at := slices.IndexFunc(p.requests, func(r request) bool { return r.onRoute() && r.from == "" && (p.silent || r.off != r.on) })
	Expect(at).NotTo(BeNumerically("<", 0), "a request that shows the filter's effect")
	r := p.requests[at].complete()
	var times phases
	times.begin(r.off)
	traffic := testkit.StartTraffic(testkit.TrafficOptions{
		Addr: fmt.Sprintf("127.0.0.1:%d", w.port), Host: "shop.test", Path: r.path, Method: r.method, Body: r.body, Lines: r.header, Rate: number("GATEHOUSE_TEST_POLICY_RATE", 200),
		Judge: func(e testkit.Exchange) error {
			said := p.tell(answerOf(e.Status, e.Header, e.Body))
			if !times.allows(said, e.Sent, e.Done) {
				return fmt.Errorf("says %q: %s", said, e.Body)
			}
			return nil
		},
	})
	DeferCleanup(traffic.Stop)
	for range number("GATEHOUSE_TEST_POLICY_SWITCHES", 10) {
		times.begin(r.off, r.on)
		w.attach(onShop)
		times.begin(r.on)
		Expect(p.tell(w.send(r))).To(Equal(r.on))
		times.begin(r.off, r.on)
		w.detach(onShop)
		times.begin(r.off)
		Expect(p.tell(w.send(r))).To(Equal(r.off))
	}
	report := traffic.Stop()
	AddReportEntry("traffic", report.String())
	Expect(report.Failures).To(BeEmpty(), report.String())
	Expect(report.Requests).To(BeNumerically(">", 0))
	Expect(w.listeners()).To(Equal(before))
}
