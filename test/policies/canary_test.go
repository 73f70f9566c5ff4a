package policies_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// from returns the status and the backend of an answer, and the cookies that it sets.
func from(a answer) string {
	return strings.TrimSpace(fmt.Sprint(a.status, " ", a.header.Get(testkit.BackendHeader), " ", strings.Join(a.header["Set-Cookie"], ", ")))
}

func canary() policy {
	return policy{
		kind:    "route_filter_canary",
		config:  `{"upstreams":[{"name":"green","weight":100}],"sticky":"cookie"}`,
		changed: `{"upstreams":[{"name":"blue","weight":1},{"name":"green","weight":0}],"sticky":"cookie","header":{"name":"X-Canary","value":"1"}}`,
		says:    from,
		requests: []request{
			{what: "a plain one", off: "200 blue", on: "200 green", changed: "200 blue", both: "200 blue"},
			{what: "one with the header", header: []string{"X-Canary: 1"}, off: "200 blue", on: "200 green", changed: "200 green", both: "200 green"},
			{what: "one with another value", header: []string{"X-Canary: 2"}, off: "200 blue", on: "200 green", changed: "200 blue", both: "200 blue"},
			{
				what: "one with a cookie for who has no share", header: []string{"Cookie: gh-canary-f=green; gh-canary-g=green"},
				off: "200 blue", on: "200 green", changed: "200 blue", both: "200 blue",
			},
			{
				what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"},
				off: "200 blue", on: "200 green", changed: "200 blue", both: "200 blue",
			},
			{what: "a route without upstreams", path: "/empty", off: "503", on: "200 green", changed: "200 blue", both: "200 green"},
			{what: "a redirect", host: "moved.test", off: "301", on: "301", changed: "301", both: "301"},
			{what: "a path that no route has", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{"upstreams":[]}`, "Filter_config.upstreams", `has 0 upstreams; give 1 to 16, such as [{"name":"blue","weight":95},{"name":"green","weight":5}]`},
			{`{"upstreams":[{"name":"blue","weight":0}]}`, "Filter_config.upstreams", "has only weights of 0, so no upstream would answer"},
			{`{"upstreams":[{"name":"blue","weight":1},{"name":"blue","weight":1}]}`, "Filter_config.upstreams[1].name", `"blue" is in the list twice`},
			{`{"upstreams":[{"name":"blue","weight":-1},{"name":"green","weight":2}]}`, "Filter_config.upstreams[0].weight", "-1 is not between 0 and 1000000"},
			{`{"upstreams":[{"name":"blue","weight":1,"request":{"set":{"host":"a.test"}}}]}`, "Filter_config.upstreams[0].request.set.host", `"host" cannot be changed; the rewrite of Route_config changes path and host`},
			{`{"upstreams":[{"name":"blue","weight":1,"response":{"set":{"server":"a"}}}]}`, "Filter_config.upstreams[0].response", `"server" is set by the gateway and cannot be changed`},
			{`{"upstreams":[{"name":"blue","weight":1}],"sticky":"ip"}`, "Filter_config.sticky", `"ip" is not one of cookie, none`},
			{`{"upstreams":[{"name":"blue","weight":1}],"header":{"name":":path","value":"/"}}`, "Filter_config.header.name", `":path" is not a header that can select an upstream`},
			{`{"upstreams":[{"name":"blue","weight":1}],"header":{"name":"x-a","value":""}}`, "Filter_config.header.value", "is empty; use remove to remove a header"},
		},
	}
}

var _ = Describe("A canary with a cookie", func() {
	const weights = `{"upstreams":[{"name":"blue","weight":%d},{"name":"green","weight":%d}],"sticky":"cookie"}`

	It("keeps returning clients, and lets a forged cookie select only among its upstreams", func() {
		w := newWorld(canary())
		w.configure(fmt.Sprintf(weights, 50, 50))
		w.attach(onRoute)
		const cookie = "gh-canary-f=%s; Path=/; HttpOnly; SameSite=Lax"
		seen := map[string]int{}
		for range 60 {
			a := w.send(request{what: "a new client"})
			backend := a.header.Get(testkit.BackendHeader)
			Expect(a.header["Set-Cookie"]).To(Equal([]string{fmt.Sprintf(cookie, backend)}))
			seen[backend]++
			again := request{what: "who comes back", header: []string{fmt.Sprint("Cookie: a=b; gh-canary-f=", backend)}}
			Expect(from(w.send(again))).To(Equal("200 " + backend))
			Expect(w.chances(again)).To(Equal(map[string]float64{backend: 100}))
		}
		Expect(seen).To(HaveLen(2))
		Expect(w.chances(request{})).To(Equal(map[string]float64{"blue": 50, "green": 50}))
		for _, forged := range []string{"red", "", "Blue", "blue+green", "%62lue", "127.0.0.1:1323", "blue\tgreen", strings.Repeat("a", 4000)} {
			a := w.send(request{what: forged, header: []string{"Cookie: gh-canary-f=" + forged}})
			Expect(a.status).To(Equal(200), forged)
			Expect(a.header["Set-Cookie"]).To(HaveLen(1), forged)
		}
		for cookies, backend := range map[string]string{
			"gh-canary-f=green; gh-canary-f=blue": "green", `gh-canary-f="blue"`: "blue", "x=gh-canary-f=blue; gh-canary-f=green": "green", "gh-canary-f = green;gh-canary-f=blue": "blue",
		} {
			r := request{what: cookies, header: []string{"Cookie: " + cookies}}
			Expect(w.send(r).header.Get(testkit.BackendHeader)).To(Equal(backend), cookies)
			Expect(w.chances(r)).To(Equal(map[string]float64{backend: 100}), cookies)
		}

		By("removing the share")
		w.configure(fmt.Sprintf(weights, 1, 0))
		Expect(from(w.send(request{header: []string{"Cookie: gh-canary-f=green"}}))).To(Equal("200 blue"))
	})

	It("changes the headers of each upstream's requests and answers", func() {
		w := newWorld(canary())
		w.configure(`{"upstreams":[
			{"name":"blue","weight":1,"request":{"set":{"x-part":"blue 5%"},"add":{"x-more":"own"},"remove":["x-gone"]},"response":{"set":{"x-by":"b"},"remove":["content-type"]}},
			{"name":"green","weight":0,"request":{"set":{"x-part":"green"}}}],"header":{"name":"x-canary","value":"1"}}`)
		w.attach(onRoute)
		sent := []string{"X-Part: forged", "X-More: client", "X-Gone: 1"}
		a := w.send(request{header: sent})
		Expect(a.seen).To(HaveKeyWithValue("X-Part", []string{"blue 5%"}))
		Expect(a.seen).To(HaveKeyWithValue("X-More", []string{"client", "own"}))
		Expect(a.seen).NotTo(HaveKey("X-Gone"))
		Expect(a.header).To(HaveKeyWithValue("X-By", []string{"b"}))
		Expect(a.header).NotTo(HaveKey("Content-Type"))
		a = w.send(request{header: append(sent, "X-Canary: 1")})
		Expect(from(a)).To(Equal("200 green"))
		Expect(a.seen).To(HaveKeyWithValue("X-Part", []string{"green"}))
		Expect(a.seen).To(HaveKeyWithValue("X-Gone", []string{"1"}))
		Expect(a.header).NotTo(HaveKey("X-By"))
	})

	It("loses no request while its weights change", func() {
		w := newWorld(canary())
		w.attach(onRoute)
		before := w.listeners()
		traffic := testkit.StartTraffic(testkit.TrafficOptions{
			Addr: fmt.Sprintf("127.0.0.1:%d", w.port), Host: "shop.test", Path: "/shop", Rate: number("GATEHOUSE_TEST_POLICY_RATE", 200),
		})
		DeferCleanup(traffic.Stop)
		for n := range number("GATEHOUSE_TEST_POLICY_SWITCHES", 10) {
			w.configure(fmt.Sprintf(weights, 100-10*(n%10), 10*(n%10)))
		}
		report := traffic.Stop()
		Expect(report.Failures).To(BeEmpty(), report.String())
		Expect(report.Requests).To(BeNumerically(">", 0))
		Expect(w.listeners()).To(Equal(before))
	})

	It("prevents the deletion of its upstreams", func() {
		w := newWorld(canary())
		a, err := w.api.Delete(limit(), "/upstream/green")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusConflict), a.Body)
		Expect(a.Body).To(ContainSubstring("/filter/f"))
		a, err = w.api.Post(limit(), "/filter", "Filter_name=h", "Filter_type=route_filter_canary", `Filter_config={"upstreams":[{"name":"red","weight":1}]}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
	})
})

// chances returns the percentages of the upstreams that explain predicts.
func (w *world) chances(r request) map[string]float64 {
	GinkgoHelper()
	r = r.complete()
	var list []struct {
		Forward struct {
			Clusters []struct {
				Endpoints []struct {
					Upstream string
					Percent  float64
				}
			}
		}
	}
	w.read("/proxy/gw/explain?"+url.Values{"method": {r.method}, "url": {"http://" + r.host + r.path}, "header": r.header}.Encode(), "core_db_explain", &list)
	Expect(list).To(HaveLen(1))
	found := map[string]float64{}
	for _, c := range list[0].Forward.Clusters {
		for _, e := range c.Endpoints {
			if e.Percent > 0 {
				found[e.Upstream] += e.Percent
			}
		}
	}
	return found
}
