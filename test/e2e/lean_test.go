package e2e_test

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The lean profile", func() {
	It("is switched without losing a request, and what it loses is what docs/performance.md says", func() {
		g, gw, _ := shop("--access-log", "json")
		full := gw.get("shop.example", "/full")
		Expect(full.Header).To(HaveKey("X-Envoy-Upstream-Service-Time"))
		_, fields := lineOf(g, "/full")
		Expect(fields).To(HaveKey("response_code_details"))

		traffic, stop := gw.traffic("shop.example", 200)
		lean := func(value string) {
			a, err := gw.api.Do(limit(), http.MethodPut, "/globalconfig/globals?wait=applied", "application/json",
				`{"globalconfig_type":"globalconfig_globals","config":{"lean":`+value+`}}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
		}
		for _, value := range []string{"true", "false", "true"} {
			lean(value)
			await(traffic, 50)
		}
		stop()

		green := backend("green")
		addUpstream(gw.api, green)
		addService(gw.api, "new", "new.example", "green")
		post(gw.api, "/proxy/gw/service/new?wait=applied")
		a := gw.get("new.example", "/lean?secret=1", "User-Agent: it")
		Expect(a.Status).To(Equal(http.StatusOK))
		Expect(a.Header).NotTo(HaveKey("X-Envoy-Upstream-Service-Time"))
		text, fields := lineOf(g, "/lean")
		Expect(slices.Collect(maps.Keys(fields))).To(ConsistOf("start_time", "method", "authority", "path", "response_code",
			"response_flags", "duration_ms", "request_id", "upstream_host", "downstream_remote_address"), text)
		Expect(fields).To(And(HaveKeyWithValue("path", "/lean"), HaveKeyWithValue("response_code", BeNumerically("==", 200)),
			HaveKeyWithValue("upstream_host", "127.0.0.1:"+strconv.Itoa(green.Port))), text)
		stats := read(adminOf(g), "/stats?filter=^cluster[.]green[.]")
		Expect(stats).To(And(ContainSubstring("cluster.green.upstream_rq_total: 1\n"), Not(ContainSubstring("upstream_rq_2xx"))))
	})

	It("does not take a broken upstream for one that answers", func() {
		_, gw := standalone("--access-log", "off")
		post(gw.api, "/globalconfig", "globalconfig_name=globals", "globalconfig_type=globalconfig_globals", `config={"lean":true}`)
		list := slices.DeleteFunc(troubles(), func(t trouble) bool { return t.name != "closed" && t.name != "plaintotls" })
		Expect(list).To(HaveLen(2))
		breakAll(gw.api, list)
		for _, t := range list {
			Eventually(gw.answers).WithArguments(t.name+".test", "/").Should(HavePrefix("50"))
		}
		Expect(saidOf(gw.api, "closed.test")).To(And(HavePrefix("failing: "), ContainSubstring("connection refused")))
		Eventually(func() string {
			gw.get("plaintotls.test", "/")
			return saidOf(gw.api, "plaintotls.test")
		}).Should(MatchRegexp("^not_known: of its last [1-9] requests?, none is known to have succeeded$"))
	})
})
