package e2e_test

import (
	"encoding/json"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The edge", func() {
	It("normalizes paths and refuses what it cannot normalize", func() {
		_, gw, _ := shop()
		Expect(gw.get("shop.example", "/a/../b").Echo.Path).To(Equal("/b"))
		Expect(gw.get("shop.example", "/a/./%2e%2e/b?c=..").Echo.Path).To(Equal("/b?c=.."))
		Expect(gw.get("shop.example", "//a///b").Echo.Path).To(Equal("/a/b"))

		redirect := gw.get("shop.example", "/a%2fb")
		Expect(redirect.Status).To(Equal(http.StatusTemporaryRedirect))
		Expect(redirect.Header.Get("Location")).To(HaveSuffix("/a/b"))

		Expect(gw.answers("shop.example", "/", "x_under_score: 1")).To(Equal("400"))
		Expect(gw.answers("shop.example", "/", "X-Dash: 1")).To(Equal("blue"))
	})

	It("does not trust a client's claim about its address", func() {
		_, gw, _ := shop()
		echo := gw.get("shop.example", "/", "X-Forwarded-For: 9.9.9.9").Echo
		// After what the client sent comes what the gateway saw.
		Expect(echo.Headers.Get("X-Forwarded-For")).To(MatchRegexp(`^9\.9\.9\.9,[0-9a-f.:]+$`))
		Expect(echo.Headers.Get("X-Request-Id")).NotTo(BeEmpty())
	})

	It("writes a line of JSON about each request", func() {
		g, gw, _ := shop()
		Expect(gw.get("shop.example", "/cart/1?item=2").Status).To(Equal(http.StatusOK))
		var entry map[string]any
		Eventually(func() string {
			for _, line := range g.Stdout.Lines() {
				entry = nil
				if json.Unmarshal([]byte(line), &entry) == nil && entry["path"] == "/cart/1" {
					return "found"
				}
			}
			return "not found in " + g.Stdout.String()
		}).Should(Equal("found"))
		Expect(entry).To(And(
			HaveKeyWithValue("method", "GET"),
			HaveKeyWithValue("authority", "shop.example"),
			HaveKeyWithValue("response_code", BeNumerically("==", 200)),
			HaveKeyWithValue("route", "root"),
			HaveKeyWithValue("upstream_cluster", "blue"),
		))
	})

	It("writes no such line with --access-log off", func() {
		g, gw, _ := shop("--access-log", "off")
		Expect(gw.get("shop.example", "/cart/1").Status).To(Equal(http.StatusOK))
		Expect(g.Stop(limit())).To(BeZero())
		Expect(g.Stdout.String()).To(BeEmpty())
	})

	It("has the admin endpoint with statistics and log levels", func() {
		g, _, _ := shop()
		admin := g.Admin
		Expect(read(admin, "/stats")).To(ContainSubstring("http.http.downstream_rq_total: "))
		answer, err := admin.Post(limit(), "/logging?level=trace")
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Status).To(Equal(http.StatusOK))
		Expect(answer.Body).To(MatchRegexp(`(?m)^\s*http: trace$`))
		_, err = admin.Post(limit(), "/logging?level=warning")
		Expect(err).NotTo(HaveOccurred())
	})
})
