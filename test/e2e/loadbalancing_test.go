package e2e_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// checked are the fields of an upstream whose health is checked often.
var checked = []string{
	"Upstream_hc_path=" + testkit.HealthPath, "Upstream_hc_intervalseconds=1", "Upstream_hc_timeoutseconds=1",
	"Upstream_hc_unhealthythresholdcount=1", "Upstream_hc_healthythresholdcount=1",
}

// tally sends requests, and returns how many each backend answered.
func (g gateway) tally(requests int) map[string]int {
	GinkgoHelper()
	counts := map[string]int{}
	for range requests {
		counts[g.answers("shop.example", "/")]++
	}
	return counts
}

// shares returns the percentages that explain names, by upstream.
func shares(gw gateway) map[string]float64 {
	GinkgoHelper()
	var answer struct {
		Data struct {
			List []explain.Answer `json:"core_db_explain"`
		}
	}
	Expect(json.Unmarshal([]byte(read(gw.api, "/proxy/gw/explain?url=http://shop.example/")), &answer)).To(Succeed())
	percent := map[string]float64{}
	for _, c := range answer.Data.List[0].Forward.Clusters {
		for _, e := range c.Endpoints {
			percent[e.Upstream] += e.Percent
		}
	}
	return percent
}

// balancedShop serves shop.example by backends; fields are those of each upstream.
func balancedShop(gw gateway, fields map[string][]string) map[string]*testkit.Backend {
	GinkgoHelper()
	backends, names := map[string]*testkit.Backend{}, []string{}
	for name, more := range fields {
		b := backend(name)
		addUpstream(gw.api, b, append(append([]string{}, checked...), more...)...)
		backends[name], names = b, append(names, name)
	}
	addService(gw.api, "shop", "*", names...)
	addProxy(gw.api, "gw", gw.port, "shop")
	Eventually(gw.answers).WithArguments("shop.example", "/").Should(BeElementOf(names))
	return backends
}

func change(api testkit.API, path, body string) {
	GinkgoHelper()
	a, err := api.Do(limit(), http.MethodPatch, path, "application/json", body)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), "PATCH %s %s: %s", path, body, a.Body)
}

var _ = Describe("The priorities of upstreams", func() {
	It("send requests to the next ones as far as those before are not healthy, and explain says so", func() {
		_, gw := standalone("--access-log", "off")
		b := balancedShop(gw, map[string][]string{"one": nil, "two": nil, "spare": {"Upstream_priority=3"}})
		Eventually(shares).WithArguments(gw).Should(Equal(map[string]float64{"one": 50, "two": 50, "spare": 0}))
		Expect(gw.tally(50)).To(And(HaveLen(2), Not(HaveKey("spare"))))
		By("one of two is not healthy: 1.4 times a half stay")
		b["one"].SetHealthy(false)
		Eventually(shares).WithArguments(gw).Should(Equal(map[string]float64{"one": 0, "two": 70, "spare": 30}))
		// Envoy gathers changes of health for up to a second.
		Eventually(gw.tally).WithArguments(200).Should(And(HaveLen(2), HaveKeyWithValue("spare", BeNumerically("~", 60, 30)), HaveKey("two")))
		By("none is healthy")
		b["two"].SetHealthy(false)
		Eventually(shares).WithArguments(gw).Should(Equal(map[string]float64{"one": 0, "two": 0, "spare": 100}))
		Eventually(gw.tally).WithArguments(20).Should(Equal(map[string]int{"spare": 20}))
		By("healthy again")
		b["one"].SetHealthy(true)
		b["two"].SetHealthy(true)
		Eventually(gw.tally).WithArguments(20).ShouldNot(HaveKey("spare"))
	})

	It("lose no request when the only upstream before dies, even without health checks", func() {
		_, gw := standalone("--access-log", "off")
		one, spare := backend("one"), backend("spare")
		addUpstream(gw.api, one)
		addUpstream(gw.api, spare, "Upstream_priority=1")
		addService(gw.api, "shop", "*", "one", "spare")
		change(gw.api, "/service/shop/route/root", `{"route_config":{"methods":["GET"]}}`)
		addProxy(gw.api, "gw", gw.port, "shop")
		gw.expect("shop.example", "/", "one")
		traffic, stop := gw.traffic("shop.example", 500)
		Eventually(func() string { return served(traffic, "one") }).Should(Equal("only one"))
		one.Kill()
		Eventually(func() string { return served(traffic, "spare") }).Should(Equal("only spare"))
		stop()
	})

	It("are refused among upstreams with other settings, by name", func() {
		_, gw, _ := shop("--access-log", "off")
		addUpstream(gw.api, backend("spare"), "Upstream_priority=1", "Upstream_strategy=random")
		a, err := gw.api.Post(limit(), "/service/shop/route/root/upstream/spare")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
		Expect(a.Body).To(ContainSubstring("Upstream_priority"))
		Expect(a.Body).To(ContainSubstring("they differ in Upstream_strategy"))
		gw.expect("shop.example", "/", "blue")
	})
})

var _ = Describe("The zone of an Envoy", func() {
	It("keeps requests in the zone while enough upstreams there are healthy", func() {
		_, gw := standalone("--access-log", "off", "--zone", "a")
		prefer := "Upstream_zone_mincount=2"
		b := balancedShop(gw, map[string][]string{"a1": {"Upstream_zone=a", prefer}, "a2": {"Upstream_zone=a", prefer}, "b1": {"Upstream_zone=b", prefer}})
		Eventually(gw.tally).WithArguments(40).Should(And(HaveLen(2), Not(HaveKey("b1"))))
		Expect(read(gw.api, "/proxy/gw/explain?url=http://shop.example/")).To(ContainSubstring("keeps the requests of cluster a1+a2+b1 in it while at least 2 of its upstreams there are healthy"))
		b["a1"].SetHealthy(false)
		Eventually(gw.tally).WithArguments(40).Should(And(HaveLen(2), HaveKey("b1"), HaveKey("a2")))
		b["a1"].SetHealthy(true)
		Eventually(gw.tally).WithArguments(40).Should(And(HaveLen(2), Not(HaveKey("b1"))))
		By("zones that do not matter: the weights count, and not the number of upstreams in a zone")
		for name := range b {
			change(gw.api, "/upstream/"+name+"?wait=applied", `{"upstream_zone_mincount":0}`)
		}
		Eventually(gw.tally).WithArguments(30).Should(And(HaveLen(3), HaveEach(BeNumerically(">=", 8))))
	})
})

var _ = Describe("Slow start", func() {
	DescribeTable("gives an upstream that becomes healthy a part of its share at first", func(strategy string) {
		const window = 4 * time.Second
		_, gw := standalone("--access-log", "off")
		slow := []string{"Upstream_slowstart_seconds=4", "Upstream_strategy=" + strategy}
		b := balancedShop(gw, map[string][]string{"old": slow, "new": slow})
		begin := time.Now()
		b["new"].SetHealthy(false)
		Eventually(gw.tally).WithArguments(20).Should(Equal(map[string]int{"old": 20}))
		Eventually(time.Since).WithArguments(begin).Should(BeNumerically(">", window), "old is old then")
		b["new"].SetHealthy(true)
		Eventually(gw.tally).WithArguments(20).Should(HaveKey("new"))
		Expect(gw.tally(200)).To(HaveKeyWithValue("new", BeNumerically("<", 70)), "a tenth of its weight at first")
		Eventually(gw.tally).WithArguments(100).Should(HaveKeyWithValue("new", BeNumerically("~", 50, 15)))
	},
		Entry(nil, "round_robin"),
		Entry(nil, "least_request"),
	)
})

var _ = Describe("A change of load balancing", func() {
	It("loses no request and changes no listener", func() {
		_, gw := standalone("--access-log", "off", "--zone", "a")
		balancedShop(gw, map[string][]string{"one": {"Upstream_zone=a"}, "two": {"Upstream_zone=b"}})
		listeners := read(gw.api, "/proxy/gw/xds?type=listener")
		_, stop := gw.traffic("shop.example", 500)
		for round := range 25 {
			for _, name := range []string{"one", "two"} {
				change(gw.api, "/upstream/"+name+"?wait=applied", fmt.Sprintf(`{"upstream_zone_mincount":%d,"upstream_slowstart_seconds":%d}`, round%2, round%3))
			}
			change(gw.api, "/upstream/two?wait=applied", `{"upstream_slowstart_seconds":7,"upstream_zone_mincount":1}`)
			change(gw.api, "/upstream/one?wait=applied", `{"upstream_slowstart_seconds":7,"upstream_zone_mincount":1}`)
			change(gw.api, "/upstream/two?wait=applied", `{"upstream_priority":`+strconv.Itoa(1+round%3)+`}`)
			change(gw.api, "/upstream/two?wait=applied", `{"upstream_priority":0}`)
		}
		stop()
		Expect(read(gw.api, "/proxy/gw/xds?type=listener")).To(Equal(listeners))
	})
})

var _ = Describe("A Unix socket", func() {
	It("is an upstream only in a directory that the operator names", func() {
		dir, err := os.MkdirTemp("", "sock") // a short path
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		l, err := net.Listen("unix", filepath.Join(dir, "app.sock"))
		Expect(err).NotTo(HaveOccurred())
		app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(testkit.BackendHeader, "app")
		}))
		Expect(app.Listener.Close()).To(Succeed())
		app.Listener = l
		app.Start()
		DeferCleanup(app.Close)

		g, gw := standalone("--access-log", "off", "--upstream-sockets", dir)
		post(gw.api, "/upstream", "Upstream_name=app", "Upstream_ip=unix:"+dir+"/app.sock", "Upstream_port=1", "Upstream_hc_path=/")
		addService(gw.api, "shop", "*", "app")
		addProxy(gw.api, "gw", gw.port, "shop")
		gw.expect("shop.example", "/", "app")
		Eventually(saidOf).WithArguments(gw.api, "shop.example").Should(HavePrefix("healthy: "))
		Expect(read(gw.api, "/proxy/gw/explain?url=http://shop.example/")).To(ContainSubstring(`"address":"unix:` + dir + `/app.sock"`))
		By("Envoy's admin socket")
		Eventually(g.Records).WithArguments("envoy is ready").ShouldNot(BeEmpty())
		admin, _ := g.Records("envoy is ready")[0]["admin_socket"].(string)
		Expect(admin).NotTo(BeEmpty())
		for _, path := range []string{admin, dir + "/../" + filepath.Base(dir) + "/app.sock", "@app"} {
			a, err := gw.api.Post(limit(), "/upstream", "Upstream_name=other", "Upstream_ip=unix:"+path, "Upstream_port=1")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(BeElementOf(http.StatusBadRequest, http.StatusUnprocessableEntity), a.Body)
		}
	})
})

var _ = Describe("A DNS name", func() {
	It("is resolved as its upstream says", func() {
		_, gw := standalone("--access-log", "off")
		b := backend("blue")
		for name, fields := range map[string][]string{
			"strict": {"Upstream_dns_family=v4_only"}, "logical": {"Upstream_dns=logical", "Upstream_dns_refreshseconds=0"}, "all": {"Upstream_dns_family=all"},
		} {
			post(gw.api, "/upstream", append([]string{"Upstream_name=" + name, "Upstream_ip=localhost", "Upstream_port=" + strconv.Itoa(b.Port)}, fields...)...)
			addService(gw.api, name, name+".example", name)
		}
		addProxy(gw.api, "gw", gw.port, "strict", "logical", "all")
		for _, name := range []string{"strict", "logical", "all"} {
			gw.expect(name+".example", "/", "blue")
		}
	})
})
