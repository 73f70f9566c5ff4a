package e2e_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// perSecond is the example of the specification. A request for which the engine was
// late is answered with 503, which distinguishes it from an allowed one.
const perSecond = `{"domain":"edge","on_error":"deny","descriptors":[{"key":"remote_address","rate_limit":{"unit":"second","requests_per_unit":5}}]}`

// wholeWindows is how many windows each number of clients must fill:
// GATEHOUSE_TEST_WINDOWS, or a number that suits a run with the other tests.
func wholeWindows() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_WINDOWS")); err == nil {
		return n
	}
	return 2
}

// heard is an answer. The engine counted the request in a second between sent and done:
// it has the same clock.
type heard struct {
	sent, done int64
	status     int
	remaining  string
	took       time.Duration
}

// windows sums up answers under perSecond by the seconds of the clock.
type windows struct {
	// full counts the windows in which 5 requests were allowed.
	full int
	// missing counts requests that were not allowed, in windows with enough requests.
	missing int
	// tooMany are requests that were allowed in a window that had already allowed 5.
	tooMany []heard
	// late counts the requests for which the engine was late.
	late int
}

// judge finds out how many requests were allowed in each window. An allowed request is
// answered with the remaining number: each window returns 4, 3, 2, 1 and 0, once each.
// So the answers with the same number must fit different windows, each one of the few
// seconds in which it may have been counted; and of the windows with enough requests,
// none may be left without. (If both are possible, they are possible together: the
// theorem of Mendelsohn and Dulmage.)
func judge(answers []heard) (v windows) {
	passed := map[string][]heard{}
	came := map[int64]int{} // certainly in that window
	every := map[int64]bool{}
	for _, a := range answers {
		every[a.sent], every[a.done] = true, true
		switch a.status {
		case http.StatusServiceUnavailable:
			v.late++
			continue
		case http.StatusOK:
			passed[a.remaining] = append(passed[a.remaining], a)
		}
		if a.sent == a.done {
			came[a.sent]++
		}
	}
	enough := map[int64]bool{}
	for w, n := range came {
		if n >= 5 {
			enough[w] = true
		}
	}
	found := map[int64]int{}
	for _, list := range passed {
		_, left := fit(list, every)
		v.tooMany = append(v.tooMany, left...)
		used, _ := fit(list, enough)
		for _, w := range used {
			found[w]++
		}
	}
	for w := range enough {
		if found[w] == 5 {
			v.full++
		}
		v.missing += 5 - found[w]
	}
	return v
}

// fit assigns different answers to as many windows as possible. It gives each window,
// in order, the answer that can wait the least.
func fit(answers []heard, windows map[int64]bool) (used []int64, left []heard) {
	answers = slices.SortedFunc(slices.Values(answers), func(a, b heard) int { return int(a.done - b.done) })
	for _, w := range slices.Sorted(maps.Keys(windows)) {
		i := slices.IndexFunc(answers, func(a heard) bool { return a.sent <= w && w <= a.done })
		if i >= 0 {
			used = append(used, w)
			answers = slices.Delete(answers, i, i+1)
		}
	}
	return used, answers
}

// afterRefusal returns the requests of one client that were allowed after one was over
// the limit, certainly in the same second.
func afterRefusal(inOrder []heard) (list []heard) {
	var over int64
	for _, a := range inOrder {
		switch {
		case a.status == http.StatusTooManyRequests:
			over = a.sent // at the earliest
		case a.status == http.StatusOK && a.done == over:
			list = append(list, a)
		}
	}
	return list
}

// record is what clients have received so far.
type record struct {
	mu   sync.Mutex
	list []heard
	errs []error
}

func (r *record) note(a heard, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	r.list = append(r.list, a)
}

func (r *record) answers() []heard {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// one sends a request over a keep-alive connection.
func (r *record) one(client *http.Client, gw gateway) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", gw.port), http.NoBody)
	if err != nil {
		return err
	}
	req.Host = "shop.example"
	sent := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		r.note(heard{}, err)
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	took := time.Since(sent)
	r.note(heard{sent.Unix(), time.Now().Unix(), resp.StatusCode, resp.Header.Get("x-ratelimit-remaining"), took}, err)
	return err
}

// hammer lets clients send until more windows were full than in the earlier answers,
// and adds to those.
func hammer(gw gateway, clients, more int, before []heard) []heard {
	GinkgoHelper()
	want := judge(before).full + more
	r := &record{list: slices.Clone(before)}
	var group sync.WaitGroup
	stop := make(chan struct{})
	end := sync.OnceFunc(func() {
		close(stop)
		group.Wait()
	})
	DeferCleanup(end)
	for range clients {
		group.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: 15 * time.Second}
			defer client.CloseIdleConnections()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if r.one(client, gw) != nil {
					return // it is noted
				}
			}
		})
	}
	Eventually(func() int { return judge(r.answers()).full }).
		WithTimeout(time.Minute + 5*time.Duration(more)*time.Second).WithPolling(250 * time.Millisecond).Should(BeNumerically(">=", want))
	end()
	Expect(r.errs).To(BeEmpty())
	return r.answers()
}

// Clients send without a pause for some seconds, and every answer is judged. Nothing
// depends on when they start or on the speed of the machine, and nothing is retried: on
// a slow machine it takes longer to fill the windows.
var _ = Describe("A limit of 5 each second", func() {
	DescribeTable("allows exactly 5 in each second of the clock, to 1, 10 and 64 clients", func(build func(string) *lab) {
		l := build(perSecond)
		var all []heard
		for _, clients := range []int{1, 10, 64} {
			before := judge(all)
			from := len(all)
			all = hammer(l.gw, clients, wholeWindows(), all)
			if clients == 1 {
				Expect(afterRefusal(all)).To(BeEmpty(), "passed after the first 429 of its second")
			}
			v := judge(all)
			AddReportEntry(fmt.Sprintf("%d clients", clients), fmt.Sprintf("%d requests; in %d seconds exactly 5 passed; for %d requests the engine was late",
				len(all)-from, v.full-before.full, v.late-before.late))
		}
		for _, a := range all {
			switch a.status {
			case http.StatusOK:
				Expect(a.remaining).To(BeElementOf("0", "1", "2", "3", "4"))
			case http.StatusTooManyRequests:
				Expect(a.remaining).To(Equal("0"))
			default:
				Expect(a.status).To(Equal(http.StatusServiceUnavailable))
				Expect(a.took).To(BeNumerically(">=", patience), "the engine failed and was not late")
			}
		}
		v := judge(all)
		Expect(v.tooMany).To(BeEmpty())
		Expect(v.missing).To(BeNumerically("<=", v.late), "each that did not pass has to be one for which the engine was late")
		Expect(v.full).To(BeNumerically(">=", 3*wholeWindows()))
		for _, e := range l.envoys {
			Expect(asked(e)).NotTo(BeZero(), "an Envoy got no request")
		}
	},
		Entry("that the gateway counts itself", ownLab),
		Entry("that the stock engine counts, for two Envoys together", stockLab),
	)
})

var _ = Describe("A changed rate", func() {
	DescribeTable("applies to the very next request after the answer, and keeps its counts", func(build func(string) *lab) {
		const changes = 50
		l := build(rates(1_000_000))
		var met, changed []time.Duration
		late := 0
		for i := range changes {
			most := 1000 + i*7%20*100 // up and down
			began := time.Now()
			l.change(rates(most))
			answered := time.Now()
			a := l.gw.get("shop.example", "/")
			took := time.Since(answered)
			if a.Header.Get("x-ratelimit-limit") == "" && took >= patience {
				late++ // caused by the engine, not the change
				continue
			}
			met, changed = append(met, took), append(changed, answered.Sub(began))
			Expect(a.Header.Get("x-ratelimit-limit")).To(Equal(fmt.Sprintf("%d, %d;w=604800", most, most)), "change %d", i)
			remaining, err := strconv.Atoi(a.Header.Get("x-ratelimit-remaining"))
			Expect(err).NotTo(HaveOccurred())
			Expect(most-remaining).To(And(BeNumerically("<=", i+1), BeNumerically(">=", i+1-late)), "what was counted before change %d", i)
		}
		Expect(len(met)).To(BeNumerically(">", changes/2))
		slices.Sort(met)
		slices.Sort(changed)
		AddReportEntry("changes", fmt.Sprintf("%d of %d met by the next request, whose answer came %s after that to the change (p50, max %s); the change took %s (p50, max %s); for %d the engine was late",
			len(met), changes, ms(met[len(met)/2]), ms(met[len(met)-1]), ms(changed[len(met)/2]), ms(changed[len(met)-1]), late))
	},
		Entry("that the gateway counts itself", ownLab),
		Entry("that the stock engine counts", stockLab),
	)
})
