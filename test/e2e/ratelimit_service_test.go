package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// ownRates returns rates with the behavior without the engine.
func ownRates(requests int, onError string) string {
	return fmt.Sprintf(`{"domain":"edge","on_error":%q,"descriptors":[{"key":"remote_address","rate_limit":{"unit":"week","requests_per_unit":%d}}]}`,
		onError, requests)
}

var _ = Describe("The rate-limit service", func() {
	var (
		engine *testkit.Ratelimit
		gw     gateway
		envoys []*testkit.Envoy
	)
	// patch changes the rates; the change must be in effect with the answer.
	patch := func(config string) {
		GinkgoHelper()
		a, err := gw.api.Do(limit(), http.MethodPatch, "/globalconfig/rates?wait=applied&timeout=20s", "application/json", `{"config":`+config+`}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Expect(a.Body).NotTo(ContainSubstring("lagging"))
	}
	count := func(requests int) map[string]int {
		seen := map[string]int{}
		for range requests {
			seen[gw.answers("shop.example", "/")]++
		}
		return seen
	}
	// start runs everything: the program, the engine with its Redis, and two Envoys of
	// one proxy, which reach the engine by a name or an address of this machine.
	start := func(host, onError string) {
		GinkgoHelper()
		redis, err := testkit.StartRedis(limit(), GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(redis.Kill)
		xds := fmt.Sprintf("127.0.0.1:%d", freePort())
		engine, err = testkit.SpawnRatelimit(testkit.RatelimitOptions{XDSAddr: xds, RedisAddr: redis.Addr})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return engine.Kill() })
		g := serve("--access-log", "off", "--xds-addr", xds, "--ratelimit-address", strings.Replace(engine.Addr, "127.0.0.1", host, 1))
		Expect(engine.WaitReady(limit())).To(Succeed())
		gw = gateway{g.API, freePort()}
		addUpstream(gw.api, backend("blue"))
		addService(gw.api, "shop", "*", "blue")
		addProxy(gw.api, "gw", gw.port, "shop")
		envoys = []*testkit.Envoy{envoyFor("gw", g.XDSAddr), envoyFor("gw", g.XDSAddr)}
		gw.expect("shop.example", "/", "blue")
		post(gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", "config="+ownRates(5, onError))
		post(gw.api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit", `Filter_config={"descriptors":[{"remote_address":"client"}]}`)
		applied(gw.api, http.MethodPost, "/proxy/gw/globalconfig/rates")
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/limit")
	}

	It("counts for two Envoys together, and a changed rate applies from the answer on", func() {
		start("localhost", "allow")
		Expect(count(20)).To(Equal(map[string]int{"blue": 5, "429": 15}))
		for _, e := range envoys {
			Expect(asked(e)).NotTo(BeZero(), "an Envoy got no request")
		}
		patch(ownRates(25, "allow")) // the 15 that were over count too
		Expect(count(20)).To(Equal(map[string]int{"blue": 5, "429": 15}))

		By("counting the limit that a filter states itself, whose change also applies from its answer on")
		post(gw.api, "/filter", "Filter_name=each", "Filter_type=route_filter_ratelimit", `Filter_config={"per":"client","limit":"3/week"}`)
		remove(gw.api, "/service/shop/route/root/filter/limit")
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/each")
		Expect(count(5)).To(Equal(map[string]int{"blue": 3, "429": 2}))
		applied(gw.api, http.MethodPatch, "/filter/each", `Filter_config={"per":"client","limit":"6/week"}`)
		Expect(count(5)).To(Equal(map[string]int{"blue": 1, "429": 4}))

		By("showing the engine in the status, and not among the Envoys without a proxy")
		status := read(gw.api, "/status")
		Expect(status).To(And(ContainSubstring(`"ratelimit_engines":[{"address":"127.0.0.1:`), ContainSubstring(`"waiting_nodes":[]`)))
		Expect(status).To(ContainSubstring(`"state":"current","acknowledged":{"revision":`))
	})

	DescribeTable("that is gone", func(onError, want string) {
		start("127.0.0.1", onError)
		Expect(count(8)).To(Equal(map[string]int{"blue": 5, "429": 3}))
		Expect(engine.Kill()).To(Succeed())
		Expect(count(8)).To(Equal(map[string]int{want: 8}))
		passed := 0
		for _, e := range envoys {
			passed += unlimited(e)
		}
		Expect(passed).To(Equal(map[string]int{"allow": 8, "deny": 0}[onError]), "what passed unlimited is counted, for an alarm")

		By("coming back, with the counts that Redis kept")
		Expect(engine.Respawn()).To(Succeed())
		Expect(engine.WaitReady(limit())).To(Succeed())
		gw.expect("shop.example", "/", "429")
		Expect(count(8)).To(Equal(map[string]int{"429": 8}))
	},
		Entry("allows everything with on_error allow", "allow", "blue"),
		Entry("denies everything with on_error deny", "deny", "503"),
	)
})

var _ = Describe("A gateway with --ratelimit-address", func() {
	It("uses that engine and does not count itself, and a wait reports that it is not connected", func() {
		nobody := fmt.Sprintf("127.0.0.1:%d", freePort())
		g, gw, _ := shop("--ratelimit-address", nobody)
		Expect(g.Records("gatehouse is up")[0]).To(HaveKeyWithValue("rate_limits", nobody))
		post(gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", "config="+ownRates(1000, "deny"))
		post(gw.api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit", `Filter_config={"descriptors":[{"remote_address":"client"}]}`)
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/limit")
		gw.expect("shop.example", "/", "503")
		a, err := gw.api.Do(limit(), http.MethodPatch, "/globalconfig/rates?wait=applied&timeout=500ms", "application/json",
			`{"config":`+ownRates(2000, "deny")+`}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusAccepted), a.Body)
		Expect(a.Body).To(And(ContainSubstring(`"reason":"not_connected"`), ContainSubstring("no rate-limit engine is connected")))
	})
})

// asked returns the line of an Envoy's statistics with its number of requests to the
// engine; empty for none.
func asked(e *testkit.Envoy) string {
	GinkgoHelper()
	a, err := e.Admin.Get(context.Background(), "/stats?usedonly&filter=gatehouse/ratelimit.upstream_rq_total")
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(a.Body)
}

// unlimited returns how many requests an Envoy allowed because the engine did not
// answer.
func unlimited(e *testkit.Envoy) int {
	GinkgoHelper()
	a, err := e.Admin.Get(context.Background(), "/stats/prometheus?usedonly&filter=failure_mode_allowed")
	Expect(err).NotTo(HaveOccurred())
	const name = `envoy_cluster_ratelimit_gatehouse_failure_mode_allowed{envoy_cluster_name="blue"} `
	_, number, found := strings.Cut(a.Body, name)
	if !found {
		return 0
	}
	n, err := strconv.Atoi(strings.Fields(number)[0])
	Expect(err).NotTo(HaveOccurred())
	return n
}
