package attack_test

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// pagesConfig lets pages of https://a.test, and of hosts below b.test, read as their
// user. Pages of the host itself and of https://a.test:8443 may change what is below
// /change.
const pagesConfig = `
version: 1
filters:
- {filter_name: pages, filter_type: vh_filter_cors, filter_config: {origins: ["https://a.test", {regex: 'https://[a-z]+\.b\.test'}], methods: [POST], credentials: true}}
- {filter_name: closed, filter_type: route_filter_directresponse, filter_config: {status: 503, body: closed}}
- {filter_name: own, filter_type: http_filter_csrf, filter_config: {origins: ["https://a.test:8443"]}}
services:
- service_name: shop
  fqdn: shop.test
  routes:
  - {route_name: open, route_prefix: /open, upstreams: [blue], filters: [pages]}
  - {route_name: post, route_prefix: /post, route_config: {methods: [POST]}, upstreams: [blue], filters: [pages]}
  - {route_name: closed, route_prefix: /closed, filters: [pages, closed]}
  - {route_name: change, route_prefix: /change, upstreams: [blue], filters: [own]}
`

// strangers are origins that look like allowed ones.
func strangers() [][]string {
	var list [][]string
	for _, o := range []string{
		"null", "https://a.test.evil.test", "https://evila.test", "http://a.test", "https://a.test:8443", "https://a.test:443", "https://x.y.b.test",
		"https://xxb.test", "https://x.b.test.evil.test", "https://evil.test/https://a.test", "*", "https://a.test.", "HTTPS://a.test", "https://A.test", "https://a.test/",
		"https://a.test@evil.test", "https://evil.test#https://a.test", "https://x.b-test", "https://.b.test", "a.test", "//a.test", "https://", "https://a.test,https://evil.test",
		"https://x.b.test%0d%0ax: y", "https://a.test\tb", "https://a.testé",
	} {
		list = append(list, []string{"Origin: " + o})
	}
	return append(list, []string{"Origin: https://evil.test", "Origin: https://a.test"}, []string{"Origin: https://a.test", "Origin: https://evil.test"},
		[]string{"Origin: https://evil.test", "X-Forwarded-Host: a.test", "Referer: https://a.test/"}, nil)
}

var _ = Describe("Web pages of strangers", func() {
	var t target
	var base testkit.API
	BeforeEach(func(ctx SpecContext) {
		t = startEmpty(ctx, nil)
		document := pagesConfig + "upstreams: [{upstream_name: blue, upstream_ip: " + t.blue.IP + ", upstream_port: " + strconv.Itoa(t.blue.Port) + "}]\nproxies: [{name: gw, services: [shop]}]\n"
		a, err := t.API.Do(ctx, http.MethodPut, "/config?wait=applied", "application/yaml", document)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		base = testkit.API{URL: "http://127.0.0.1:" + strconv.Itoa(t.port)}
	})
	// send adds the host.
	send := func(ctx SpecContext, method, path string, headers ...string) testkit.Answer {
		GinkgoHelper()
		return try(ctx, base, method, path, "", append([]string{"Host: shop.test"}, headers...)...)
	}
	// allowed returns the headers that let a page read.
	allowed := func(a testkit.Answer) (names []string) {
		for name := range a.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				names = append(names, name)
			}
		}
		return names
	}

	It("read nothing, and their preflights have no effect", func(ctx SpecContext) {
		const asks = "Access-Control-Request-Method: POST"
		for _, page := range []string{"https://a.test", "https://x.b.test"} { // strangers do not receive these
			for _, path := range []string{"/open", "/closed"} {
				Expect(send(ctx, "GET", path, "Origin: "+page).Header.Get("Access-Control-Allow-Origin")).To(Equal(page), path)
			}
			Expect(send(ctx, "OPTIONS", "/post", "Origin: "+page, asks).Status).To(Equal(http.StatusOK))
			Expect(send(ctx, "OPTIONS", "/closed", "Origin: "+page, asks).Status).To(Equal(http.StatusOK))
		}
		for _, origin := range some(30, strangers()) {
			for _, path := range []string{"/open?header=access-control-allow-origin:*&header=access-control-allow-credentials:true", "/closed"} {
				Expect(allowed(send(ctx, "GET", path, origin...))).To(BeEmpty(), "%v %s", origin, path)
				Expect(allowed(send(ctx, "OPTIONS", path, append(origin, asks)...))).To(BeEmpty(), "%v %s", origin, path)
			}
			before := t.blue.Requests()
			for _, more := range [][]string{{asks}, {asks, "X-HTTP-Method-Override: POST"}, {asks, "Content-Length: 0"}} {
				a := send(ctx, "OPTIONS", "/post", append(origin, more...)...)
				Expect(a.Status).To(BeElementOf(http.StatusNoContent, http.StatusNotFound, http.StatusBadRequest), "%v", origin)
				Expect(allowed(a)).To(BeEmpty(), "%v", origin)
			}
			Expect(t.blue.Requests()).To(Equal(before), "%v", origin)
		}
	}, NodeTimeout(2*time.Minute))

	It("that are allowed to read cannot send other methods than the route allows", func(ctx SpecContext) {
		before := t.blue.Requests()
		for _, more := range [][]string{
			nil, {"Access-Control-Request-Method: PUT"}, {"Access-Control-Request-Method: post"}, {"Access-Control-Request-Method: POST,PUT"},
			{"Access-Control-Request-Method: "}, {"Access-Control-Request-Method: POST", "Access-Control-Request-Method: PUT"},
		} {
			Expect(send(ctx, "OPTIONS", "/post", append(more, "Origin: https://a.test")...).Status).To(Equal(http.StatusNotFound), "%q", more)
		}
		Expect(send(ctx, "GET", "/post", "Origin: https://a.test", "Access-Control-Request-Method: POST").Status).To(Equal(http.StatusNotFound))
		Expect(send(ctx, "OPTIONS", "/post", "Origin: https://a.test", "Access-Control-Request-Method: POST").Status).To(Equal(http.StatusOK))
		Expect(t.blue.Requests()).To(Equal(before))
	}, NodeTimeout(2*time.Minute))

	It("change nothing", func(ctx SpecContext) {
		for _, own := range []string{"https://shop.test", "https://a.test:8443"} {
			Expect(send(ctx, "POST", "/change", "Origin: "+own).Status).To(Equal(http.StatusOK))
		}
		before := t.blue.Requests()
		for _, headers := range append(some(20, strangersToChange()), nil) {
			for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
				Expect(send(ctx, method, "/change", headers...).Status).To(BeElementOf(http.StatusForbidden, http.StatusBadRequest), "%s %v", method, headers)
			}
		}
		Expect(t.blue.Requests()).To(Equal(before))
	}, NodeTimeout(2*time.Minute))
})

// strangersToChange claim to be pages that may request changes.
func strangersToChange() [][]string {
	return [][]string{
		{"Origin: null"}, {"Origin: null", "Referer: https://shop.test/"}, {"Origin: https://shop.test.evil.test"}, {"Origin: https://evilshop.test"},
		{"Origin: https://a.test"}, {"Origin: https://a.test:84430"}, {"Origin: https://evil.test", "Origin: https://shop.test"}, {"Origin: https://shop.test", "Origin: https://evil.test"},
		{"Origin: https://evil.test", "Referer: https://shop.test/"}, {"Origin: https://shop.test@evil.test"}, {"Origin: https://evil.test/shop.test"}, {"Referer: https://evil.test/shop.test"},
		{"Referer: https://shop.test@evil.test/"}, {"Referer: https://evil.test?https://shop.test"}, {"Origin: https://evil.test", "X-Forwarded-Host: evil.test"},
		{"Origin: https://evil.test", "X-HTTP-Method-Override: GET"}, {"Origin: https://shop.test:8080"}, {"Origin: https://*"}, {"Origin: *"}, {"Origin: https://[::1]"},
	}
}
