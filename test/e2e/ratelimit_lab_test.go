package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// lab is a gateway whose only route is limited by client address, with its engine.
type lab struct {
	gw gateway
	// plane is the program, and args are the arguments for its restart.
	plane *testkit.Gatehouse
	args  []string
	// engine, redis and envoys are nil if the program counts itself.
	engine *testkit.Ratelimit
	redis  *testkit.Redis
	envoys []*testkit.Envoy

	addresses int
	// late counts the requests that the engine did not answer in time without a fault.
	late int
}

// ownLab returns a gateway that counts itself.
func ownLab(config string) *lab {
	GinkgoHelper()
	l := &lab{gw: gateway{port: freePort()}}
	l.args = append(standaloneArgs(GinkgoT().TempDir(), l.gw.port), "--access-log", "off")
	l.startPlane()
	addUpstream(l.gw.api, backend("blue"))
	addService(l.gw.api, "shop", "*", "blue")
	post(l.gw.api, "/proxy", "Name=gw")
	post(l.gw.api, "/proxy/gw/service/shop")
	l.limit(config)
	return l
}

// stockLab returns a gateway with two Envoys for which the stock engine counts.
func stockLab(config string) *lab {
	GinkgoHelper()
	l := &lab{gw: gateway{port: freePort()}}
	xds := fmt.Sprintf("127.0.0.1:%d", freePort())
	var err error
	l.redis, err = testkit.StartRedis(limit(), GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return l.redis.Kill() })
	l.engine, err = testkit.SpawnRatelimit(testkit.RatelimitOptions{XDSAddr: xds, RedisAddr: l.redis.Addr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return l.engine.Kill() })
	l.args = []string{
		"serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", xds,
		"--access-log", "off", "--ratelimit-address", l.engine.Addr,
	}
	l.startPlane()
	Expect(l.engine.WaitReady(limit())).To(Succeed())
	addUpstream(l.gw.api, backend("blue"))
	addService(l.gw.api, "shop", "*", "blue")
	addProxy(l.gw.api, "gw", l.gw.port, "shop")
	l.envoys = []*testkit.Envoy{envoyFor("gw", xds), envoyFor("gw", xds)}
	l.limit(config)
	return l
}

func (l *lab) startPlane() {
	GinkgoHelper()
	l.plane = start(nil, l.args...)
	l.gw.api = l.plane.API
}

// limit creates a globalconfig_ratelimit, and waits until it is in effect.
func (l *lab) limit(config string) {
	GinkgoHelper()
	l.gw.expect("shop.example", "/", "blue")
	post(l.gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", "config="+config)
	post(l.gw.api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit", `Filter_config={"descriptors":[{"remote_address":"client"}]}`)
	applied(l.gw.api, http.MethodPost, "/proxy/gw/globalconfig/rates")
	applied(l.gw.api, http.MethodPost, "/service/shop/route/root/filter/limit")
}

// change changes it, and returns when the change is in effect.
func (l *lab) change(config string) {
	GinkgoHelper()
	a, err := l.gw.api.Do(limit(), http.MethodPatch, "/globalconfig/rates?wait=applied&timeout=20s", "application/json", `{"config":`+config+`}`)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	Expect(a.Body).NotTo(ContainSubstring("lagging"))
}

// newClient returns an address that was not counted before.
func (l *lab) newClient() string {
	l.addresses++
	return fmt.Sprintf("127.0.%d.%d", 64+l.addresses/250, 1+l.addresses%250)
}

// answer returns the status of an answer, with "uncounted" if the request was allowed
// without an answer of the engine.
func (l *lab) answer(from string) string {
	resp, err := sendFrom(l.gw, from, http.MethodGet, "/", "", "")
	switch {
	case err != nil && strings.Contains(err.Error(), "connection refused"):
		return "refused"
	case err != nil:
		return err.Error()
	case resp.StatusCode == http.StatusOK && resp.Header.Get("x-ratelimit-limit") == "":
		return "200 uncounted"
	}
	return strconv.Itoa(resp.StatusCode)
}

// wasCounted reports whether the engine gave that answer.
func wasCounted(answer string) bool { return answer == "200" || answer == "429" }

// patience is somewhat less than Envoy's timeout for an engine: its timers are not
// exact. On a busy machine an engine can be late without a fault: such a request took
// longer, which distinguishes it.
const patience = 200 * time.Millisecond

// asked4 sends requests, four at a time, and returns their answers and how long each
// took, in order. late are those that the engine did not answer in time.
func (l *lab) asked4(requests int, from string) (answers map[string]int, took []time.Duration, late int) {
	var mu sync.Mutex
	var group sync.WaitGroup
	answers = map[string]int{}
	const clients = 4
	for range clients {
		group.Go(func() {
			for range requests / clients {
				began := time.Now()
				a := l.answer(from)
				mu.Lock()
				answers[a]++
				took = append(took, time.Since(began))
				if !wasCounted(a) && time.Since(began) >= patience {
					late++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	slices.Sort(took)
	return answers, took, late
}

// limits checks that a new client is limited exactly. If the engine was late for a
// client, the result is not clear, and it tries the next one.
func (l *lab) limits() (client string) {
	GinkgoHelper()
	for range 10 {
		client = l.newClient()
		answers, _, late := l.asked4(8, client)
		if late == 0 {
			Expect(answers).To(Equal(map[string]int{"200": 5, "429": 3}))
			return client
		}
		l.late += late
	}
	Fail("the engine is late again and again")
	return ""
}

// gets checks the answer to a client, from an engine that is not late.
func (l *lab) gets(client, want string) {
	GinkgoHelper()
	for range 10 {
		began := time.Now()
		a := l.answer(client)
		if wasCounted(a) || time.Since(began) < patience {
			Expect(a).To(Equal(want))
			return
		}
		l.late++
	}
	Fail("the engine is late again and again")
}

// ms formats a time for a table.
func ms(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.3g ms", float64(d.Microseconds())/1000)
}
