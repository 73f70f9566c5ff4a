//go:build images

package stack_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func itoa(n int) string              { return strconv.Itoa(n) }
func escape(text string) string      { return url.QueryEscape(text) }
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// kill is a container to kill, and what still works while it is down.
type kill struct {
	service string
	// edge and inner are the status of requests to /greeting: always 200, or 0 for no
	// answer; -1 means 200 except for some at first.
	edge, inner int
	// limited is the status of a request over its limit.
	limited int
	// api and write are the status of GET /service and of a write of the API; 0 for no
	// answer.
	api, write int
}

// kills are the rows of the table in docs/local-stack.md.
var kills = []kill{
	{service: "gatehouse", edge: 200, inner: 200, limited: 429},
	{service: "postgres", edge: 200, inner: 200, limited: 429, api: 503, write: 503},
	{service: "redis", edge: 200, inner: 200, limited: 200, api: 200, write: 200},
	{service: "ratelimit", edge: 200, inner: 200, limited: 200, api: 200, write: 200},
	{service: "blue", edge: -1, inner: -1, limited: 429, api: 200, write: 200},
	{service: "green", edge: -1, inner: -1, limited: 429, api: 200, write: 200},
	{service: "edge", edge: 0, inner: 200, limited: 429, api: 200, write: 200},
	{service: "inner", edge: 200, inner: 0, limited: 429, api: 200, write: 200},
	{service: "dex", edge: 200, inner: 200, limited: 429, api: 200, write: 200},
	{service: "prometheus", edge: 200, inner: 200, limited: 429, api: 200, write: 200},
}

// within is how soon everything is as before after a container was restarted, on a busy
// machine.
const within = time.Minute

// keptLimit is more than killOne and awaitKept ask for: a counter that was lost does not reach it.
const keptLimit = 200

// useUp creates two limits, and reaches them.
func (s *stack) useUp() {
	GinkgoHelper()
	for name, n := range map[string]int{"exhausted": 1, "kept": keptLimit} {
		s.limit(name, n)
		for range n {
			Expect(get(bound(time.Minute), "http://"+s.inner+"/"+name).status).To(Equal(200))
		}
		Expect(get(bound(time.Minute), "http://"+s.inner+"/"+name).status).To(Equal(429))
	}
}

// killEach kills one container after the other, and restarts it.
func (s *stack) killEach() {
	GinkgoHelper()
	table := []string{"| killed | requests meanwhile | over a limit | API | right again after |", "|---|---|---|---|---|"}
	for _, k := range kills {
		row := s.killOne(k)
		table = append(table, row)
		By(row)
	}
	AddReportEntry("kill table", "\n"+strings.Join(table, "\n"), ReportEntryVisibilityAlways)
}

// killOne returns the row of one container.
func (s *stack) killOne(k kill) string {
	GinkgoHelper()
	By("killing " + k.service)
	ids := s.containers(bound(10 * time.Second))
	traffic := s.startTraffic()
	docker(bound(time.Minute), "kill", ids[k.service])

	// The API and the limit are tried until each Envoy has received a hundred requests.
	Eventually(traffic.least).WithTimeout(within).Should(BeNumerically(">=", 100))
	addr, path := s.inner, "/service/web/route?wait=applied"
	if k.inner == 0 {
		addr = s.edge
	}
	// Envoy allows a request that the engine does not answer in time, as on a busy machine. A
	// lost counter does not reach its limit with fifty requests.
	Eventually(func() int { return get(bound(time.Minute), "http://"+addr+"/kept").status }).
		WithTimeout(5*time.Second).WithPolling(100*time.Millisecond).Should(Equal(k.limited), "%s is away", k.service)
	for addr, want := range map[string]int{s.edge: k.edge, s.inner: k.inner} {
		if want != 200 {
			Eventually(traffic.settled).WithArguments(addr, -200*want).WithTimeout(within).Should(BeTrue(), "%s is away", k.service)
		}
	}
	asked := time.Now()
	read := s.call(bound(time.Minute), http.MethodGet, "/service", "", "")
	Expect(read.status).To(Equal(k.api), "%s is away: %s", k.service, read.body)
	api := map[bool]string{true: "200", false: fmt.Sprintf("%d after %s", read.status, seconds(time.Since(asked)))}[read.status == 200]
	if read.status == 0 {
		api = "none"
	}
	if k.edge == 0 || k.inner == 0 {
		path = "/service/web/route" // nothing to wait for
	}
	write := s.call(bound(time.Minute), http.MethodPost, path, formType, form("Route_Name=%[1]s-away&Route_prefix=/%[1]s-away", k.service))
	Expect(write.status/100).To(Equal(k.write/100), "%s is away: %s", k.service, write.body)
	counts := traffic.counts()
	for addr, want := range map[string]int{s.edge: k.edge, s.inner: k.inner} {
		if want == 200 {
			Expect(counts[addr]).To(And(HaveLen(1), HaveKey(200)), "%s is away: answers of %s", k.service, addr)
		}
	}

	began := time.Now()
	docker(bound(30*time.Second), "start", ids[k.service])
	s.awaitRight(k.service)
	again := time.Since(began)
	traffic.stop()
	return fmt.Sprintf("| %s | edge %s, inner %s | %d | %s | %s |", k.service, summary(counts[s.edge]), summary(counts[s.inner]), k.limited, api, seconds(again))
}

// awaitRight waits until everything is as before: both Envoys answer, limits keep their
// counters, and both have a change.
func (s *stack) awaitRight(service string) {
	GinkgoHelper()
	name := service + "-back"
	Eventually(func(g Gomega) {
		a := s.call(bound(time.Minute), http.MethodPost, "/service/web/route", formType, form("Route_Name=%[1]s&Route_prefix=/%[1]s", name))
		g.Expect(a.status).To(BeElementOf(200, 201, 409), a.body)
		for _, addr := range []string{s.edge, s.inner} {
			g.Expect(get(bound(time.Minute), "http://"+addr+"/greeting").status).To(Equal(200))
			g.Expect(get(bound(time.Minute), "http://"+addr+"/exhausted").status).To(Equal(429))
			// A route without upstreams answers 503.
			g.Expect(get(bound(time.Minute), "http://"+addr+"/"+name).status).To(Equal(503))
		}
		if service == "dex" {
			g.Expect(s.logIn()).To(Succeed())
		}
		if service == "prometheus" {
			g.Expect(s.targets()).To(HaveKeyWithValue("gatehouse:1323", "up"))
		}
	}).WithTimeout(within).Should(Succeed(), "%s is back", service)
	s.awaitKept(s.edge)
}

// awaitKept expects the counter of /kept to be there. The engine's connections to a Redis that was restarted come back
// one after the other, and a request that meets an old one is not limited.
func (s *stack) awaitKept(addr string) {
	GinkgoHelper()
	Eventually(func() int { return get(bound(time.Minute), "http://"+addr+"/kept").status }).
		WithTimeout(within).WithPolling(within/keptLimit*2).Should(Equal(429), "the counters are there, too")
}

// traffic sends requests to both Envoys.
type traffic struct {
	mu     sync.Mutex
	seen   map[string]map[int]int
	last   map[string][]int
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// startTraffic counts from when it returns.
func (s *stack) startTraffic() *traffic {
	ctx, cancel := context.WithCancel(context.Background())
	t := &traffic{seen: map[string]map[int]int{}, last: map[string][]int{}, cancel: cancel}
	for _, addr := range []string{s.edge, s.inner} {
		t.seen[addr] = map[int]int{}
		t.group.Go(func() {
			for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-tick.C {
				if a := get(ctx, "http://"+addr+"/greeting"); ctx.Err() == nil {
					t.note(addr, a.status)
				}
			}
		})
	}
	DeferCleanup(t.stop)
	return t
}

func (t *traffic) note(addr string, status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[addr][status]++
	t.last[addr] = append(t.last[addr], status)
}

// least returns the smaller number of requests of the two Envoys.
func (t *traffic) least() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	least := -1
	for _, all := range t.last {
		if least == -1 || len(all) < least {
			least = len(all)
		}
	}
	return least
}

// settled reports whether the last fifty answers of an Envoy had this status.
func (t *traffic) settled(addr string, want int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.last[addr]
	if len(all) < 50 {
		return false
	}
	return !slices.ContainsFunc(all[len(all)-50:], func(status int) bool { return status != want })
}

// counts returns the answers so far, by Envoy and status.
func (t *traffic) counts() map[string]map[int]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	copied := map[string]map[int]int{}
	for addr, by := range t.seen {
		copied[addr] = map[int]int{}
		for status, n := range by {
			copied[addr][status] = n
		}
	}
	return copied
}

func (t *traffic) stop() {
	t.cancel()
	t.group.Wait()
}

// summary describes the answers of an Envoy, such as "200 (312), 503 (4)".
func summary(by map[int]int) string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(by)) {
		name := strconv.Itoa(status)
		if status == 0 {
			name = "none"
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", name, by[status]))
	}
	return strings.Join(parts, ", ")
}
