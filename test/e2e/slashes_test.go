package e2e_test

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// registries returns a gateway in front of services with escaped slashes in their
// paths.
func registries() gateway {
	GinkgoHelper()
	_, gw, _ := shop()
	addRoute(gw.api, "shop", "npm", "/npm/", `{"rewrite":{"prefix":"/"}}`, "blue")
	addRoute(gw.api, "shop", "project", "/api/v4/projects/[^/]+", `{"match":"regex"}`, "blue")
	return gw
}

// set changes a field of the proxy, and returns when it is in effect: about once in a
// thousand times, a worker of Envoy accepts one more connection with the old setting.
func (g gateway) set(field, value, probe, want string, header ...string) {
	GinkgoHelper()
	a, err := g.api.Do(limit(), http.MethodPatch, "/proxy/gw?wait=applied", "application/json", fmt.Sprintf(`{%q:%q}`, field, value))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	Eventually(func() (right int) {
		for right < 8 && g.answers("shop.example", probe, header...) == want {
			right++
		}
		return right
	}).WithTimeout(10 * time.Second).Should(Equal(8))
}

// route returns the route that explain finds.
func (g gateway) route(target string) string {
	GinkgoHelper()
	return read(g.api, "/proxy/gw/explain?"+fields("url=http://shop.example"+target).Encode())
}

var _ = Describe("Escaped slashes", func() {
	It("are redirected by default", func() {
		gw := registries()
		Expect(read(gw.api, "/proxy/gw")).To(ContainSubstring(`"escaped_slashes":"redirect","underscore_headers":"reject"`))
		for target, location := range map[string]string{"/npm/@scope%2fname": "/npm/@scope/name", "/npm/a%5cb": "/npm/a/b"} {
			a := gw.get("shop.example", target)
			Expect(a.Status).To(Equal(http.StatusTemporaryRedirect))
			Expect(a.Header.Get("Location")).To(HaveSuffix(location))
			Expect(gw.route(target)).To(ContainSubstring(`"code":"redirected"`))
		}
	})

	It("reach the registries that need them", func() {
		gw := registries()
		gw.set("Escaped_slashes", "keep", "/npm/@scope%2fname", "blue")
		sees := func(target string) string {
			GinkgoHelper()
			a := gw.get("shop.example", target)
			Expect(a.Status).To(Equal(http.StatusOK), "%s: %s", target, a.Body)
			return a.Echo.Path
		}
		Expect(sees("/npm/@scope%2fname")).To(Equal("/@scope%2fname"), "npm install @scope/name")
		Expect(sees("/npm/@scope%2Fname/-/name-1.0.0.tgz")).To(Equal("/@scope%2Fname/-/name-1.0.0.tgz"))
		Expect(sees("/api/v4/projects/group%2Fproject?a=%2F")).To(Equal("/api/v4/projects/group%2Fproject?a=%2F"), "GitLab")
		Expect(sees("/npm/a%5Cb%5cc")).To(Equal("/a%5Cb%5cc"))
		Expect(sees("/a/%2e%2e/b%2fc")).To(Equal("/b%2fc"), "other normalization still applies")
		// docs/routing.md warns of this.
		Expect(sees("/npm/..%2fadmin")).To(Equal("/..%2fadmin"))

		Expect(gw.route("/npm/@scope%2fname")).To(And(ContainSubstring(`"code":"forwarded"`), ContainSubstring(`"route":"npm"`), ContainSubstring(`"path":"/@scope%2fname"`)))
		Expect(gw.route("/api/v4/projects/group%2Fproject")).To(ContainSubstring(`"route":"project"`))
	})

	It("are refused if the proxy says so", func() {
		gw := registries()
		gw.set("Escaped_slashes", "reject", "/npm/@scope%2fname", "400")
		for _, target := range []string{"/npm/@scope%2fname", "/a%2Fb", "/a%5Cb", "/a%5cb"} {
			Expect(gw.answers("shop.example", target)).To(Equal("400"), target)
			Expect(gw.route(target)).To(ContainSubstring(`"code":"bad_request"`))
		}
		Expect(gw.answers("shop.example", "/npm/@scope/name?a=%2f")).To(Equal("blue"), "a query is no path")
	})
})

var _ = Describe("Headers with an underscore", func() {
	It("are refused, dropped or passed on", func() {
		_, gw, _ := shop()
		const name = "x_tenant_id"
		Expect(gw.answers("shop.example", "/", name+": 1")).To(Equal("400"))

		gw.set("Underscore_headers", "drop", "/", "blue", name+": 1")
		echo := gw.get("shop.example", "/", name+": 1", "X-Dash: 2").Echo
		Expect(echo.Headers).NotTo(HaveKey("X_tenant_id"))
		Expect(echo.Headers).To(HaveKeyWithValue("X-Dash", []string{"2"}))

		gw.set("Underscore_headers", "allow", "/", "blue")
		Eventually(func() http.Header { return gw.get("shop.example", "/", name+": 1").Echo.Headers }).
			Should(HaveKeyWithValue("X_tenant_id", []string{"1"}))
		addRoute(gw.api, "shop", "tenant", "/", `{"headers":[{"name":"x_tenant_id"}],"rewrite":{"prefix":"/tenant"}}`, "blue")
		Eventually(func() string { return gw.get("shop.example", "/a", name+": 1").Echo.Path }).Should(Equal("/tenant/a"))
		told := read(gw.api, "/proxy/gw/explain?"+fields("url=http://shop.example/", "header="+name+": 1").Encode())
		Expect(told).To(ContainSubstring(`"route":"tenant"`))
	})
})
