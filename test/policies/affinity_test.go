package policies_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func affinity() policy {
	const hash, exact = `200 blue gh-node; Path=/; SameSite=Lax; HttpOnly`, `200 blue node; Max-Age=3600; Path=/; HttpOnly`
	return policy{
		kind:    "route_filter_affinity",
		config:  `{}`,
		changed: `{"mode":"exact","cookie":"node","ttl":"1h"}`,
		// says is the result of from, without the values of cookies.
		says: func(a answer) string { return regexp.MustCompile(`="[^"]*"`).ReplaceAllString(from(a), "") },
		requests: []request{
			{what: "a plain one", off: "200 blue", on: hash, changed: exact, both: exact},
			{what: "one with the cookies", header: []string{"Cookie: gh-node=a; node=b"}, off: "200 blue", on: "200 blue", changed: exact, both: exact},
			{what: "a route without upstreams", path: "/empty", off: "503", on: "503", changed: "503", both: "503"},
			{what: "a redirect", host: "moved.test", off: "301", on: "301", changed: "301", both: "301"},
			{what: "a path that no route has", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{"mode":"sticky"}`, "Filter_config.mode", `"sticky" is not one of hash, exact`},
			{`{"mode":"exact","by":"address"}`, "Filter_config.by", `"address" requires mode hash: mode exact requires a cookie`},
			{`{"by":"header"}`, "Filter_config.header", `"" is not an HTTP token`},
			{`{"by":"address","header":"x"}`, "Filter_config.header", "requires by header"},
			{`{"by":"address","ttl":"1h"}`, "Filter_config.cookie", "requires by cookie, and so does ttl"},
			{`{"cookie":"a b"}`, "Filter_config.cookie", `"a b" is not an HTTP token`},
			{`{"ttl":"1ms"}`, "Filter_config.ttl", "1ms is not between 1s and 8760h"},
		},
	}
}

var _ = Describe("Affinity", func() {
	answering := func(w *world, header ...string) string {
		GinkgoHelper()
		return w.send(request{header: header}).header.Get(testkit.BackendHeader)
	}

	It("keeps a client at an upstream by a cookie, a header or its address", func() {
		w := newWorld(affinity())
		w.post("/service/shop/route/root/upstream/green?wait=applied")
		w.attach(onShop)
		seen := map[string]bool{}
		for range 20 {
			first := w.send(request{})
			backend := first.header.Get(testkit.BackendHeader)
			seen[backend] = true
			cookie, _, _ := strings.Cut(first.header.Get("Set-Cookie"), ";")
			Expect(answering(w, "Cookie: "+cookie)).To(Equal(backend))
		}
		Expect(seen).To(HaveLen(2))
		Expect(w.chances(request{})).To(Equal(map[string]float64{"blue": 50, "green": 50}))

		By("a header")
		w.configure(`{"header":"x-user"}`)
		clear(seen)
		for n := range 20 {
			user := fmt.Sprint("X-User: ", n)
			backend := answering(w, user)
			seen[backend] = true
			Expect(answering(w, user)).To(Equal(backend))
		}
		Expect(seen).To(HaveLen(2))

		By("an address")
		w.configure(`{"by":"address"}`)
		clear(seen)
		for range 10 {
			seen[answering(w)] = true
		}
		Expect(seen).To(HaveLen(1))

		By("a header, with different upstreams")
		a, err := w.api.Do(limit(), "PATCH", "/upstream/green?wait=applied", "application/x-www-form-urlencoded", "Upstream_max_retries=5")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(200), a.Body)
		w.configure(`{"header":"x-user"}`)
		clear(seen)
		for n := range 20 {
			user := fmt.Sprint("X-User: ", n)
			backend := answering(w, user)
			seen[backend] = true
			Expect(answering(w, user)).To(Equal(backend))
		}
		Expect(seen).To(HaveLen(2))
	})

	It("is exact, and lets a forged cookie select only among the upstreams of the route", func() {
		w := newWorld(affinity())
		stranger := startBackend("stranger")
		w.post("/upstream", "Upstream_name=stranger", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(stranger.Port))
		w.post("/service/shop/route/root/upstream/green?wait=applied")
		w.configure(`{"mode":"exact"}`)
		w.attach(onRoute)
		for range 10 {
			first := w.send(request{})
			backend := first.header.Get(testkit.BackendHeader)
			cookie, _, _ := strings.Cut(first.header.Get("Set-Cookie"), ";")
			for range 5 {
				Expect(answering(w, "Cookie: "+cookie)).To(Equal(backend))
			}
			Expect(w.chances(request{header: []string{"Cookie: " + cookie}})).To(Equal(map[string]float64{backend: 100}), cookie)
		}
		encode := func(address string) string {
			return "Cookie: gh-node=" + base64.StdEncoding.EncodeToString([]byte(address))
		}
		asMessage := func(address string) string { return encode(fmt.Sprintf("\n%c%s", len(address), address)) }
		for _, form := range []func(string) string{encode, asMessage} {
			chosen := form(fmt.Sprint("127.0.0.1:", w.green.Port))
			Expect(answering(w, chosen)).To(Equal("green"))
			Expect(w.chances(request{header: []string{chosen}})).To(Equal(map[string]float64{"green": 100}))
		}
		for _, forged := range []string{
			encode(fmt.Sprint("127.0.0.1:", stranger.Port)), encode("169.254.169.254:80"), encode("127.0.0.1:1323"), encode("unix:/tmp/x"), encode(""),
			encode("a.test:80"), "Cookie: gh-node=%", "Cookie: gh-node=", encode(strings.Repeat("1", 3000)),
			asMessage(fmt.Sprint("127.0.0.1:", stranger.Port)), asMessage("[::1]:80"), encode("\n\x7f127.0.0.1"),
		} {
			Expect(answering(w, forged)).To(BeElementOf("blue", "green"), forged)
			Expect(w.chances(request{header: []string{forged}})).To(Equal(map[string]float64{"blue": 50, "green": 50}), forged)
		}
		Expect(stranger.Requests()).To(BeZero())
	})
})
