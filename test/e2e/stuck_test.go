package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// mostSlower is how many times longer a change may take next to an upstream that never
// becomes ready: GATEHOUSE_TEST_RATIO, or a factor for a busy machine.
func mostSlower() float64 {
	if f, err := strconv.ParseFloat(os.Getenv("GATEHOUSE_TEST_RATIO"), 64); err == nil {
		return f
	}
	return 3
}

var _ = Describe("An upstream that never gets ready", func() {
	It("does not make another host's new route wait", func() {
		const rounds = 21
		g := serve("--access-log", "off")
		addUpstream(g.API, backend("blue"))
		// Two Envoys side by side: one has the stuck upstreams, one does not.
		sides := map[string]gateway{"calm": {g.API, freePort()}, "stuck": {g.API, freePort()}}
		for name, gw := range sides {
			addService(g.API, name, name+".example", "blue")
			addProxy(g.API, name, gw.port, name)
		}
		envoyFor("calm", g.XDSAddr)
		envoy := envoyFor("stuck", g.XDSAddr)
		for name, gw := range sides {
			gw.expect(name+".example", "/", "blue")
		}
		post(g.API, "/upstream", "Upstream_name=hanging", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(holeInTheGround()),
			"Upstream_hc_path=/", "Upstream_hc_timeoutseconds=600", "Upstream_hc_intervalseconds=600")
		post(g.API, "/upstream", "Upstream_name=nameless", "Upstream_ip=no.such.name.invalid", "Upstream_port=80")
		for _, name := range []string{"hanging", "nameless"} {
			addService(g.API, name, name+".example", name)
			post(g.API, "/proxy/stuck/service/"+name)
		}
		warms := func() map[string]string { return envoyVersions(envoy) }
		Eventually(warms).Should(And(HaveKey("warming hanging"), Or(HaveKey("warming nameless"), HaveKey("cluster nameless"))))

		took := map[string][]time.Duration{}
		for i := range rounds {
			order := []string{"calm", "stuck"}
			if i%2 == 1 {
				slices.Reverse(order)
			}
			for _, side := range order {
				took[side] = append(took[side], newRoute(sides[side], side, fmt.Sprintf("%s%d", side, i)))
			}
		}
		Expect(warms()).To(HaveKey("warming hanging"), "it was stuck all the time")

		median := func(side string) time.Duration {
			slices.Sort(took[side])
			return took[side][rounds/2]
		}
		ratio := float64(median("stuck")) / float64(median("calm"))
		text := fmt.Sprintf("a new route is live in %s, beside stuck upstreams in %s (medians of %d): ratio %.2f",
			median("calm").Round(10*time.Microsecond), median("stuck").Round(10*time.Microsecond), rounds, ratio)
		AddReportEntry("stuck", text)
		Expect(ratio).To(BeNumerically("<=", mostSlower()), "%s\n%v", text, took)
	})
})

// newRoute adds to a service a route to a new upstream, and returns how long it takes
// until that serves.
func newRoute(gw gateway, service, name string) time.Duration {
	GinkgoHelper()
	b := backend(name)
	addUpstream(gw.api, b)
	addRoute(gw.api, service, name, "/"+name, "")
	gw.expect(service+".example", "/"+name, "503") // so far it has no upstream
	began := time.Now()
	post(gw.api, "/service/"+service+"/route/"+name+"/upstream/"+name)
	for gw.answers(service+".example", "/"+name) != name {
		Expect(time.Since(began)).To(BeNumerically("<", time.Minute))
	}
	return time.Since(began)
}
