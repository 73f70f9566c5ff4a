package e2e_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// kongRequest is a request with its answer: the status and, of a backend's answer, the path and the consumer that it got.
type kongRequest struct{ method, host, path, header, want string }

// imported is a gateway with what became of a file of Kong.
type imported struct {
	gateway
	notes []string
}

// importKong imports a file of testdata and applies it.
func importKong(name string) imported {
	GinkgoHelper()
	g, gw := standalone()
	data, err := os.ReadFile("testdata/" + name)
	Expect(err).NotTo(HaveOccurred())
	text := strings.NewReplacer("PORT", fmt.Sprint(backend("blue").Port), "CLOSED", fmt.Sprint(freePort())).Replace(string(data))
	c := cliOf(g)
	_, out, told := c.run("import", "kong", document(text), "--proxy", "gw")
	post(g.API, "/proxy", "Name=gw", "Listen_ip=127.0.0.1")
	c.good("apply", "-f", document(out), "--wait")
	i := imported{gateway: gw}
	for line := range strings.Lines(told) {
		if note, is := strings.CutPrefix(strings.TrimSpace(line), "warning: "); is && !strings.Contains(note, "has its name in it") {
			i.notes = append(i.notes, note)
		}
	}
	return i
}

// expectAll sends requests.
func (i imported) expectAll(requests []kongRequest) {
	GinkgoHelper()
	for n, r := range requests {
		var headers []string
		if r.header != "" {
			headers = strings.Split(r.header, "\n")
		}
		a, err := i.send(r.method, r.host, r.path, append(headers, "X-Consumer-Username: root")...)
		Expect(err).NotTo(HaveOccurred())
		said := fmt.Sprint(a.Status)
		if a.Echo.Path != "" {
			said += " " + a.Echo.Path
			if who := a.Echo.Headers.Get("X-Consumer-Username"); who != "" && who != "root" {
				said += " " + who
			}
		}
		Expect(said).To(Equal(r.want), "request %d: %s %s%s %s", n+1, r.method, r.host, r.path, r.header)
	}
}

// withText returns a header with a text in base64.
func withText(header, text string) string {
	return header + base64.StdEncoding.EncodeToString([]byte(text))
}

var _ = Describe("A file that decK has dumped", func() {
	It("of a shop, with tiers, groups and two forms of passwords", func() {
		i := importKong("kong-shop.yaml")
		Expect(i.notes).To(ConsistOf(
			"line 110: plugin request-termination (closed): has no equivalent for single consumers; they are left out, and their requests refused",
			"line 123: plugin prometheus (all): has no equivalent",
		))
		key := func(name string) string { return withText("X-Key: ", "kong/"+name+"-1:"+name+"-key") }
		ann := withText("Authorization: Basic ", "ann:correct-horse-battery")
		Eventually(i.answers).WithArguments("shop.test", "/products").Should(Equal("blue"))
		i.expectAll([]kongRequest{
			{"GET", "shop.test", "/products/7", "", "200 /products/7"},
			{"GET", "shop.test", "/products/7", key("web"), "200 /products/7"},
			{"GET", "shop.test", "/search/shoes", "", "200 /shoes"},
			{"POST", "shop.test", "/search/shoes", "", "404"},
			{"GET", "shop.test", "/find/shoes", "", "200 /"},
			{"GET", "shop.test", "/find/42", "", "404"},
			{"GET", "other.test", "/products/7", "", "404"},
			{"GET", "shop.test", "/cart", "", "401"},
			{"GET", "shop.test", "/cart", "X-Key: web-key", "401"},
			{"GET", "shop.test", "/cart?x-key=web-key", "", "401"},
			{"GET", "shop.test", "/cart/1", key("web"), "200 /v2/1 web"},
			{"GET", "shop.test", "/cart/1", key("scraper"), "403"},
			{"GET", "shop.test", "/cart/1", key("closed"), "401"}, // Kong's request-termination says 403
			{"GET", "shop.test", "/cart/1", key("web"), "200 /v2/1 web"},
			{"GET", "shop.test", "/cart/1", key("web"), "429"}, // 2 an hour, as the shared configuration says
			{"GET", "shop.test", "/cart/1", key("outlet"), "200 /v2/1 outlet"},
			{"GET", "shop.test", "/cart/1", key("outlet"), "200 /v2/1 outlet"},
			{"GET", "shop.test", "/cart/1", key("outlet"), "200 /v2/1 outlet"},
			{"GET", "shop.test", "/cart/1", key("outlet"), "200 /v2/1 outlet"},
			{"GET", "shop.test", "/cart/1", key("outlet"), "429"}, // the tier has 4
			{"GET", "office.shop.test", "/", "", "401"},
			{"GET", "office.shop.test", "/", ann, "200 / ann"},
			{"GET", "office.shop.test", "/legacy/a", "", "401"},
			{"GET", "office.shop.test", "/legacy/a", ann, "200 /a ann"},
		})
		Expect(i.get("office.shop.test", "/", ann).Echo.Headers).NotTo(HaveKey("Authorization"))
		Expect(i.get("office.shop.test", "/legacy/", ann).Echo.Headers).To(HaveKey("Authorization"), "hide_credentials is false")
		a := i.get("shop.test", "/products/7", "Origin: https://shop.test", "X-Request-Id: mine")
		Expect([]string{a.Header.Get("Access-Control-Allow-Origin"), a.Header.Get("Access-Control-Expose-Headers"), a.Header.Get("X-Request-Id"), a.Echo.Host}).
			To(Equal([]string{"https://shop.test", "x-total", "mine", "shop.test"}))
	})

	It("of an API for partners, with tokens, CORS, headers and addresses", func() {
		i := importKong("kong-partners.yaml")
		Expect(i.notes).To(ConsistOf(
			"line 10: plugin request-transformer (orders-orders): add sets a header here, also one that is there",
			"line 28: plugin basic-auth (orders-exports): a route has only one of basic-auth and jwt here; its routes answer 503",
			"line 52: plugin pre-function (hooks-hooks): has no equivalent; its routes answer 503",
			"line 66: consumer short: its tokens are refused: their key is too short, or is none of RSA or P-256 with HS256",
			"line 70: plugin ip-restriction (barred): has no equivalent for single consumers; they are left out, and their requests refused",
		))
		token := func(issuer, key string) string { return "Authorization: Bearer " + sharedToken(issuer, key) }
		north, south := token("north-app", "0123456789abcdef0123456789abcdef"), token("south-app", "fedcba9876543210fedcba9876543210")
		Eventually(i.answers).WithArguments("api.partners.test", "/orders/1").Should(Equal("401"))
		i.expectAll([]kongRequest{
			{"GET", "api.partners.test", "/orders/1", "", "401"},
			{"GET", "api.partners.test", "/orders/1", north, "200 /internal/1 north"},
			{"GET", "api.partners.test", "/orders/1", south, "200 /internal/1 south"},
			{"DELETE", "api.partners.test", "/orders/1", south, "200 /internal/1 south"},
			{"GET", "api.partners.test", "/orders/1", token("north-app", "fedcba9876543210fedcba9876543210"), "401"},
			{"GET", "api.partners.test", "/orders/1", token("nobody", "0123456789abcdef0123456789abcdef"), "401"},
			{"GET", "api.partners.test", "/orders/1", token("short-app", "too-short"), "401"},
			{"GET", "api.partners.test", "/orders/1", token("barred-app", "barred-barred-barred-barred-1234"), "401"},
			{"GET", "api.partners.test", "/orders/1?jwt=x", "", "401"},
			{"GET", "api.partners.test", "/reports", "", "403"}, // of another address, with or without a token
			{"GET", "api.partners.test", "/reports", north, "403"},
			{"GET", "api.partners.test", "/exports", north, "503"},
			{"GET", "api.partners.test", "/hooks", "", "503"},
			{"GET", "api.partners.test", "/status", "", "200"},
			{"GET", "api.partners.test", "/", north, "404"},
			{"GET", "partners.test", "/orders/1", north, "404"},
		})
		a := i.get("api.partners.test", "/orders/1", north, "X-Internal: 1", "X-Channel: mine", "Origin: https://eu.partners.test")
		Expect(a.Echo.Headers).NotTo(HaveKey("X-Internal"))
		Expect(a.Echo.Headers.Get("X-Channel")).To(Equal("partner"))
		Expect(a.Header.Get("Access-Control-Allow-Origin")).To(Equal("https://eu.partners.test"))
		Expect(i.get("api.partners.test", "/orders/1", north, "Origin: https://evil.test").Header).NotTo(HaveKey("Access-Control-Allow-Origin"))
		preflight, err := i.send(http.MethodOptions, "api.partners.test", "/orders/1", "Origin: https://portal.partners.test", "Access-Control-Request-Method: DELETE")
		Expect(err).NotTo(HaveOccurred())
		Expect([]string{fmt.Sprint(preflight.Status), preflight.Header.Get("Access-Control-Max-Age")}).To(Equal([]string{"200", "60"}))
	})

	It("of internal services, with health checks, tags, and routes and plugins apart", func() {
		i := importKong("kong-internal.yaml")
		Expect(i.notes).To(ConsistOf(
			"line 21: upstream users.internal: healthchecks: passive has no equivalent",
			"line 41: route events: is for tcp, and left out",
			"line 44: plugin opentelemetry (all): has no equivalent",
			"line 47: consumer deployer: custom_id has no equivalent",
		))
		deployer := withText("Apikey: ", "kong/deployer-1:deployer-key")
		Eventually(i.answers).WithArguments("any.test", "/users/7").Should(Equal("blue"))
		Eventually(func() (good int) { // without the target that does not answer
			for range 10 {
				if i.answers("any.test", "/users/7") == "blue" {
					good++
				}
			}
			return good
		}).Should(Equal(10))
		i.expectAll([]kongRequest{
			{"GET", "any.test", "/users/7", "", "200 /api/users/7"},
			{"GET", "any.test", "/users/7", "X-Version: 2", "200 /api/users/7"},
			{"GET", "any.test", "/users/ann", "", "404"},
			{"GET", "any.test", "/users/7/more", "", "404"},
			{"GET", "any.test", "/users", "", "404"},
			{"POST", "any.test", "/users", "", "401"},
			{"POST", "any.test", "/users", deployer, "200 /api/users deployer"},
			{"PUT", "any.test", "/users/7", deployer, "200 /api/users/7 deployer"}, // the route with more kinds of conditions comes first
			{"GET", "a.jobs.test", "/run/now", "", "200 /now"},
			{"GET", "jobs.test", "/run/now", "", "404"},
		})
		Expect(i.get("a.jobs.test", "/run/now").Header.Get("X-Team")).To(Equal("users"))
		Expect(i.get("any.test", "/users/7").Echo.Host).To(Equal("users.internal"))
		Expect(i.get("any.test", "/users/7", "X-Version: 2").Echo.Host).To(Equal("any.test"))
	})
})
