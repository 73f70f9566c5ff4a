package e2e_test

import (
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// upstreamMetrics returns what /metrics says of the upstreams of gw: "blue succeeded", and "blue" for requests under way.
func upstreamMetrics(api testkit.API) map[string]float64 {
	GinkgoHelper()
	found := map[string]float64{}
	for _, m := range regexp.MustCompile(
		`(?m)^gatehouse_upstream_(?:requests_total|active_requests)\{proxy="gw",(?:result="(\w+)",)?upstream="([^"]*)"\} (.*)$`,
	).FindAllStringSubmatch(read(api, "/metrics"), -1) {
		n, err := strconv.ParseFloat(m[3], 64)
		Expect(err).NotTo(HaveOccurred())
		found[strings.TrimSpace(m[2]+" "+m[1])] = n
	}
	return found
}

var _ = Describe("The metrics of upstreams", func() {
	It("count what Envoys anywhere report, by the names of upstreams, and never fall", func() {
		g := serve()
		blue, green := backend("blue"), backend("green")
		addUpstream(g.API, blue)
		addUpstream(g.API, green)
		addUpstream(g.API, backend("mark"))
		post(g.API, "/upstream", "Upstream_name=gone", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(freePort()))
		addService(g.API, "shop", "*", "blue")
		addRoute(g.API, "shop", "both", "/both", "", "blue", "green")
		addRoute(g.API, "shop", "gone", "/gone", "", "gone")
		addRoute(g.API, "shop", "own", "/own", `{"retries":{"attempts":1}}`, "blue")
		addRoute(g.API, "shop", "mark", "/mark", "", "mark")
		port := freePort()
		addProxy(g.API, "gw", port, "shop")
		envoy, gw := envoyFor("gw", g.XDSAddr), gateway{g.API, port}
		gw.expect("shop.example", "/", "blue")
		now := func() map[string]float64 { return upstreamMetrics(g.API) }

		By("from the first report on")
		Eventually(func() map[string]float64 {
			for _, path := range []string{"/", "/both", "/both", "/own", "/gone", "/mark?status=500"} {
				gw.get("shop.example", path)
			}
			return now()
		}).Should(And(HaveKeyWithValue("blue succeeded", BeNumerically(">", 0)), HaveKeyWithValue("green succeeded", BeNumerically(">", 0)),
			HaveKeyWithValue("gone unconnected", BeNumerically(">", 0)), HaveKeyWithValue("mark failed", BeNumerically(">", 0))))
		// settle waits until everything before is reported: one more request is.
		settle := func() map[string]float64 {
			GinkgoHelper()
			before := now()["mark succeeded"]
			gw.get("shop.example", "/mark")
			Eventually(now).Should(HaveKeyWithValue("mark succeeded", before+1))
			return now()
		}
		before := settle()
		for range 3 {
			gw.get("shop.example", "/")
			gw.get("shop.example", "/own")
			gw.get("shop.example", "/both")
			gw.get("shop.example", "/both?status=500")
			gw.get("shop.example", "/gone")
		}
		after := settle()
		Expect(after["blue succeeded"] + after["green succeeded"]).To(Equal(before["blue succeeded"] + before["green succeeded"] + 9))
		Expect(after["blue failed"] + after["green failed"]).To(Equal(before["blue failed"] + before["green failed"] + 3))
		Expect(after["blue succeeded"]).To(BeNumerically(">=", before["blue succeeded"]+6))
		Expect(after["gone unconnected"]).To(BeNumerically(">=", before["gone unconnected"]+3))
		Expect(after).To(And(HaveKeyWithValue("gone succeeded", 0.0), HaveKeyWithValue("gone failed", 0.0), HaveKeyWithValue("blue", 0.0)))
		Expect(after).To(HaveLen(20), "four upstreams, and no clusters")

		By("a request under way for several reports")
		slow := make(chan reply)
		go func() {
			defer GinkgoRecover()
			slow <- gw.get("shop.example", "/?delay=7s")
		}()
		Eventually(now).Should(HaveKeyWithValue("blue", 1.0))
		before = settle()
		Expect(before).To(HaveKeyWithValue("blue", 1.0))
		Eventually(slow).Should(Receive())
		after = settle()
		Expect(after).To(And(HaveKeyWithValue("blue", 0.0), HaveKeyWithValue("blue succeeded", before["blue succeeded"]+1),
			HaveKeyWithValue("blue not_known", 0.0)))

		By("a new version of the cluster")
		before = after
		patch := func(fields string) {
			a, err := g.API.Do(limit(), "PATCH", "/upstream/blue?wait=applied", "application/json", fields)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(200), a.Body)
		}
		patch(`{"upstream_connect_timeoutseconds":3}`)
		gw.get("shop.example", "/")
		after = settle()
		Expect(after["blue succeeded"]).To(Equal(before["blue succeeded"] + 1))

		By("another Envoy")
		before = after
		envoy.Kill()
		Eventually(func() string { return read(g.API, "/metrics") }).ShouldNot(ContainSubstring("gatehouse_envoys{"))
		Expect(now()).To(Equal(before))
		envoyFor("gw", g.XDSAddr)
		gw.expect("shop.example", "/", "blue")
		Eventually(func() float64 {
			gw.get("shop.example", "/")
			now := now()
			Expect(now["blue succeeded"]).To(BeNumerically(">=", before["blue succeeded"]))
			return now["blue succeeded"]
		}).Should(BeNumerically(">", before["blue succeeded"]))
	})
})
