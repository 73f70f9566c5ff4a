package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// countsView is the answer of GET /proxy/gw/ratelimit for one global config.
type countsView struct {
	Counted bool
	Note    string
	Limits  []struct {
		Limit                    string
		With                     []string
		Hits, Near, Over, Shadow int
	}
	Top     *[]struct{ Value string }
	Engines []struct{ URL, Address, Error string }
}

// countsOf reads them, by the name of the global config.
func countsOf(api testkit.API) map[string]countsView {
	GinkgoHelper()
	var answer struct {
		Data struct {
			Counts []json.RawMessage `json:"core_db_ratelimit"`
		}
	}
	Expect(json.Unmarshal([]byte(read(api, "/proxy/gw/ratelimit")), &answer)).To(Succeed())
	counts := map[string]countsView{}
	for _, raw := range answer.Data.Counts {
		var c countsView
		var name struct {
			Name string `json:"globalconfig_name"`
		}
		Expect(json.Unmarshal(raw, &c)).To(Succeed())
		Expect(json.Unmarshal(raw, &name)).To(Succeed())
		counts[name.Name] = c
	}
	return counts
}

// rows returns the limits of a global config as text, with those that share their
// counts: hits, near, over and shadow.
func rows(api testkit.API, config string) func() []string {
	return func() (list []string) {
		for _, l := range countsOf(api)[config].Limits {
			path := strings.Join(append([]string{l.Limit}, l.With...), " + ")
			list = append(list, fmt.Sprintf("%s: %d %d %d %d", path, l.Hits, l.Near, l.Over, l.Shadow))
		}
		return list
	}
}

// hit sends a request with the parts of one descriptor directly to an engine.
func hit(engine *testkit.Ratelimit, times int, domain string, keysAndValues ...string) {
	GinkgoHelper()
	entries := []map[string]string{}
	for pair := range slices.Chunk(keysAndValues, 2) {
		entries = append(entries, map[string]string{"key": pair[0], "value": pair[1]})
	}
	body, err := json.Marshal(map[string]any{"domain": domain, "descriptors": []any{map[string]any{"entries": entries}}})
	Expect(err).NotTo(HaveOccurred())
	for range times {
		a, err := engine.Health.Do(limit(), http.MethodPost, "/json", "application/json", string(body))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusTooManyRequests), a.Body)
	}
}

var _ = Describe("The counts of the rate-limit service", func() {
	// start runs the program and two engines with one Redis.
	start := func(metrics func(one, two *testkit.Ratelimit) string) (g *testkit.Gatehouse, one, two *testkit.Ratelimit) {
		GinkgoHelper()
		redis, err := testkit.StartRedis(limit(), GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(redis.Kill)
		xds := fmt.Sprintf("127.0.0.1:%d", freePort())
		var engines []*testkit.Ratelimit
		for range 2 {
			e, err := testkit.SpawnRatelimit(testkit.RatelimitOptions{XDSAddr: xds, RedisAddr: redis.Addr})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() error { return e.Kill() })
			engines = append(engines, e)
		}
		one, two = engines[0], engines[1]
		args := []string{"--xds-addr", xds, "--ratelimit-address", one.Addr}
		if metrics != nil {
			args = append(args, "--ratelimit-metrics", metrics(one, two))
		}
		g = serve(args...)
		for _, e := range engines {
			Expect(e.WaitReady(limit())).To(Succeed())
		}
		return g, one, two
	}
	both := func(one, two *testkit.Ratelimit) string { return one.Metrics.URL + "," + two.Metrics.URL + "/metrics" }
	addRates := func(api testkit.API, name, config string) {
		GinkgoHelper()
		a, err := api.Do(limit(), http.MethodPost, "/globalconfig?wait=applied&timeout=20s", "application/json",
			fmt.Sprintf(`{"globalconfig_name":%q,"globalconfig_type":"globalconfig_ratelimit","config":%s}`, name, config))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
	}

	It("are reported, unchanged, from all engines that can be called", func() {
		g, one, two := start(both)
		Expect(read(g.API, "/status")).To(ContainSubstring(fmt.Sprintf(`"rate_limits":%q`, one.Addr)))
		gw := gateway{g.API, freePort()}
		addUpstream(gw.api, backend("blue"))
		addService(gw.api, "shop", "*", "blue")
		addProxy(gw.api, "gw", gw.port, "shop")
		envoyFor("gw", g.XDSAddr)
		gw.expect("shop.example", "/", "blue")
		addRates(gw.api, "rates", `{"domain":"shop.example.com","descriptors":[
			{"key":"remote_address","rate_limit":{"unit":"week","requests_per_unit":10}},
			{"key":"generic_key","value":"all","shadow_mode":true,"rate_limit":{"unit":"week","requests_per_unit":5}}]}`)
		post(gw.api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit",
			`Filter_config={"descriptors":[{"remote_address":"client"},{"generic_key":"all"}]}`)
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/limit")
		for range 13 {
			gw.answers("shop.example", "/")
		}
		// The engine reports within a second. The 9th and 10th are near the limit of
		// 10, the 5th is near that of 5.
		first := []string{"generic_key=all: 13 1 8 8", "remote_address: 13 2 3 0"}
		Eventually(rows(gw.api, "rates")).Should(Equal(first))

		hit(two, 2, "1/shop-example-com", "remote_address", "127.0.0.1")
		Eventually(rows(gw.api, "rates")).Should(Equal([]string{first[0], "remote_address: 15 2 5 0"}))
		c := countsOf(gw.api)["rates"]
		Expect(c.Top).To(BeNil())
		Expect(c.Note).To(ContainSubstring("do not show which values are limited"))
		Expect(c.Engines).To(HaveLen(2))
		Expect(cliOf(g).good("ratelimit", "top", "-o", "table")).To(MatchRegexp(`^rates: domain shop\.example\.com

LIMIT            RATE     TIME LEFT +ROUTES     HITS  NEAR  OVER  LET THROUGH
generic_key=all  5/week   \S+ +shop/root  13    1     8     8
remote_address   10/week  \S+ +shop/root  15    2     5     0

the engine's metrics do not show which values`))

		By("naming an engine that is gone")
		Expect(two.Kill()).To(Succeed())
		Expect(rows(gw.api, "rates")()).To(Equal(first))
		c = countsOf(gw.api)["rates"]
		Expect(c.Engines[0].Error).To(BeEmpty())
		Expect(c.Engines[1].URL).To(Equal(two.Metrics.URL + "/metrics"))
		Expect(c.Engines[1].Error).To(ContainSubstring("connection refused"))

		By("with no engine left")
		Expect(one.Kill()).To(Succeed())
		c = countsOf(gw.api)["rates"]
		Expect(c.Counted).To(BeFalse())
		Expect(c.Limits).To(BeEmpty())
		Expect(c.Note).To(Equal("no engine reports its counts"))
	})

	It("belong to the limit, whatever characters are in its names", func() {
		g, one, _ := start(both)
		const rate = `"rate_limit":{"unit":"week","requests_per_unit":1000}`
		odd := map[string][]string{ // the path as it is shown, and as it is sent
			`a.b=10.0.0.1`:              {"a.b", "10.0.0.1"},
			`a.b=10.0.0.2`:              {"a.b", "10.0.0.2"},
			`x:y|z=q"u\o` + "\n" + `te`: {"x:y|z", "q\"u\\o\nte"},
			`é ü={domain="1/odd"}`:      {"é ü", `{domain="1/odd"}`},
			`path=/api/*`:               {"path", "/api/v1"},
			`.`:                         {".", "anything"},
			`total_hits`:                {"total_hits", "1"},
			`over_limit=over_limit`:     {"over_limit", "over_limit"},
			`a..`:                       {"a..", "v"},
		}
		var rules []string
		for _, path := range slices.Sorted(maps.Keys(odd)) {
			key, value, _ := strings.Cut(path, "=")
			k, err := json.Marshal(key)
			Expect(err).NotTo(HaveOccurred())
			v, err := json.Marshal(value)
			Expect(err).NotTo(HaveOccurred())
			rules = append(rules, fmt.Sprintf(`{"key":%s,"value":%s,%s}`, k, v, rate))
		}
		addRates(g.API, "odd", `{"domain":"odd ö.:|\"","descriptors":[`+strings.Join(rules, ",")+`]}`)
		addRates(g.API, "deep", `{"domain":"deep","descriptors":[{"key":"a","descriptors":[{"key":"b",`+rate+`,"descriptors":[
			{"key":"c",`+rate+`},{"key":"d",`+rate+`}]},{"key":"e","descriptors":[{"key":"near_limit",`+rate+`}]}]},{"key":"a_b","value":"c",`+rate+`}]}`)
		addProxy(g.API, "gw", freePort()) // without an Envoy, so that nothing waits for one
		var want []string
		for i, path := range slices.Sorted(maps.Keys(odd)) {
			hit(one, i+1, "1/odd ö-:|\"", odd[path]...)
			want = append(want, fmt.Sprintf("%s: %d 0 0 0", path, i+1))
		}
		hit(one, 1, "2/deep", "a", "", "b", "")
		hit(one, 2, "2/deep", "a", "", "b", "", "c", "")
		hit(one, 4, "2/deep", "a", "", "b", "", "d", "")
		hit(one, 8, "2/deep", "a_b", "c")
		hit(one, 16, "2/deep", "a", "", "e", "", "near_limit", "")
		Eventually(rows(g.API, "odd")).Should(Equal(want))
		Eventually(rows(g.API, "deep")).Should(Equal([]string{"a > b + a > b > c + a > b > d: 7 0 0 0", "a_b=c: 8 0 0 0"}))
		Expect(countsOf(g.API)["deep"].Note).To(HaveSuffix("; these limits are not in the engine's metrics, for their names: a > e > near_limit"))
	})

	It("are not known without a metrics URL, and the answer names the flag", func() {
		g, _, _ := start(nil)
		addRates(g.API, "rates", rates(5))
		addProxy(g.API, "gw", freePort())
		Expect(countsOf(g.API)["rates"].Note).To(ContainSubstring("--ratelimit-metrics"))
		Expect(countsOf(g.API)["rates"].Counted).To(BeFalse())
	})
})
