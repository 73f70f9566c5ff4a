package attack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// scriptTry is a script on a route to blue that tries to reach green, which only a closed host and a closed route have.
type scriptTry struct {
	what, script string
	// status is that of the answer; 200 comes from blue.
	status int
}

func scriptTries(green *testkit.Backend) []scriptTry {
	const toVault, toAdmin, get = `h:headers():replace(":authority", "vault.test") `, `h:headers():replace(":path", "/admin") `, `{[":method"] = "GET", [":path"] = "/", [":authority"] = "vault.test"}, "", 1000`
	endpoint := green.IP + ":" + strconv.Itoa(green.Port)
	return []scriptTry{
		{"another host", toVault, 200},
		{"another host, chosen again", toVault + `h:clearRouteCache()`, 503},
		{"another path", toAdmin, 200},
		{"another path, chosen again", toAdmin + `h:clearRouteCache()`, 503},
		{"the header of another route", `h:headers():add("x-admin", "1")`, 200},
		{"another host, after the body", `h:body() ` + toVault + `h:clearRouteCache()`, 503},
		{"a method of the class", `h.__index.clearRouteCache(h)`, 503},
		{"the class's own functions", `h.__gc(h)`, 503},
		{"the class of the headers", `h:headers().__gc(h:headers())`, 503},
		{"what pairs shows", `for k, f in pairs(h) do if k == "clearRouteCache" then f(h) end end`, 503},
		{"another endpoint", `h:setUpstreamOverrideHost("` + endpoint + `", false)`, 503},
		{"a call of another upstream", `h:httpCall("green", ` + get + `)`, 503},
		{"a call of the control plane", `h:httpCall("gatehouse_xds", ` + get + `)`, 503},
		{"a call that does not wait", `h:httpCall("green", ` + get + `, true)`, 503},
		{"a call of nothing", `h:httpCall(nil, ` + get + `)`, 503},
		{"the state of other filters", `h:streamInfo():filterState():set("a", "b", "c")`, 503},
		{"counters of its own", `h:stats():counter("a"):inc(1)`, 503},
		{"the chunks of the body", `for c in h:bodyChunks() do error("no") end`, 503},
		{"a loop behind the trailers", `h:trailers() while true do end`, 503},
		{"a new method", `h.clearRouteCache = 1`, 503},
		// What a script may use works.
		{"its own upstream", `local headers, body = h:httpCall("blue", ` + get + `) if headers[":status"] ~= "200" then error("no") end`, 200},
		{"what it knows", `h:logInfo(h:streamInfo():protocol() .. h:timestampString() .. h:streamInfo():downstreamRemoteAddress() .. tostring(h:connection():ssl() == nil))`, 200},
		{"its headers", `local n = 0 for k, v in pairs(h:headers()) do n = n + 1 end h:headers():add("x-n", tostring(n)) h:headers():remove("x-n") if h:headers():getNumValues(":path") ~= 1 then error("no") end`, 200},
	}
}

var _ = Describe("A script that tries to leave its route", func() {
	It("is forwarded where its request was allowed, or not at all", func(ctx SpecContext) {
		t := startTarget(ctx, "--allow-lua")
		green, err := testkit.StartBackend("green", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(green.Close)
		t.add(ctx, "/upstream", "Upstream_name=green", "Upstream_ip="+green.IP, "Upstream_port="+strconv.Itoa(green.Port))
		t.add(ctx, "/filter", "Filter_name=closed", "Filter_type=vh_filter_ipaccess", `Filter_config={"allow":["192.0.2.77"]}`)
		t.addService(ctx, "script", "script.test")
		t.add(ctx, "/service", "Service_Name=vault", "fqdn=vault.test")
		for _, r := range [][]string{
			{"vault", "root", "Route_prefix=/"},
			{"script", "admin", "Route_prefix=/admin"},
			{"script", "staff", "Route_prefix=/", `Route_config={"headers":[{"name":"x-admin","exact":"1"}]}`},
		} {
			t.add(ctx, "/service/"+r[0]+"/route", append([]string{"Route_Name=" + r[1]}, r[2:]...)...)
			t.link(ctx, "/service/"+r[0]+"/route/"+r[1]+"/upstream/green")
			t.link(ctx, "/service/"+r[0]+"/route/"+r[1]+"/filter/closed")
		}
		t.add(ctx, "/filter", "Filter_name=script", "Filter_type=http_filter_lua", `Filter_config={"script":"function envoy_on_request(h) end"}`)
		t.link(ctx, "/service/script/route/root/filter/script")
		t.link(ctx, "/proxy/gw/service/vault")
		t.link(ctx, "/proxy/gw/service/script?wait=applied")
		base := testkit.API{URL: fmt.Sprintf("http://127.0.0.1:%d", t.port)}
		for _, r := range scriptTries(green) {
			config, err := json.Marshal(object{"script": "function envoy_on_request(h) " + r.script + " end", "upstreams": []string{"blue"}})
			Expect(err).NotTo(HaveOccurred())
			a, err := t.API.Post(ctx, "/filter/script/config?wait=applied", "Filter_config="+string(config))
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), "%s: %s", r.what, a.Body)
			a = try(ctx, base, http.MethodPost, "/", "body", "Host: script.test")
			Expect(a.Status).To(Equal(r.status), "%s: %s", r.what, a.Body)
			if r.status == http.StatusOK {
				Expect(a.Header.Get(testkit.BackendHeader)).To(Equal("blue"), r.what)
			}
			Expect(green.Requests()).To(BeZero(), r.what)
		}
	}, SpecTimeout(2*time.Minute))
})
