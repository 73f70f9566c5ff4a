package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A path template", Ordered, func() {
	const host = "users.example"
	var gw gateway

	BeforeAll(func() {
		_, gw = standalone()
		for _, name := range []string{"blue", "green", "red"} {
			addUpstream(gw.api, backend(name))
		}
		post(gw.api, "/service", "Service_Name=users", "fqdn="+host)
		addRoute(gw.api, "users", "rest", "/users/{id}/{rest=**}", `{"match":"template","rewrite":{"template":"/people/{id}/{rest}"}}`, "blue")
		addRoute(gw.api, "users", "one", "/users/{id}", `{"match":"template","rewrite":{"template":"/one-{id}"}}`, "blue")
		addRoute(gw.api, "users", "me", "/users/me", `{"match":"exact"}`, "green")
		addRoute(gw.api, "users", "cart", "/users/{id}/cart", `{"match":"template"}`, "green")
		addRoute(gw.api, "users", "numbers", "/users/[0-9]+", `{"match":"regex"}`, "red")
		addRoute(gw.api, "users", "below", "/users/", "", "red")
		addRoute(gw.api, "users", "old", "/old/{id}", `{"match":"template"}`)
		post(gw.api, "/filter", "Filter_name=away", "Filter_type=route_filter_redirect", `Filter_config={"prefix":"/new"}`)
		post(gw.api, "/service/users/route/old/filter/away")
		addProxy(gw.api, "gw", gw.port, "users")
		gw.expect(host, "/users/me", "green")
	})

	DescribeTable("selects the route and makes the path, as explain says",
		func(target, want, path string) {
			r := gw.get(host, target)
			Expect(r.Header.Get(testkit.BackendHeader)).To(Equal(want))
			Expect(r.Echo.Path).To(Equal(path))
			var explained struct {
				Data struct {
					List []explain.Answer `json:"core_db_explain"`
				}
			}
			Expect(json.Unmarshal([]byte(read(gw.api, "/proxy/gw/explain?url="+url.QueryEscape("http://"+host+target))), &explained)).To(Succeed())
			Expect(explained.Data.List).To(HaveLen(1))
			forward := explained.Data.List[0].Forward
			Expect(forward.Path).To(Equal(path))
			Expect(forward.Clusters[0].Endpoints[0].Upstream).To(Equal(want))
		},
		Entry("one variable, a query", "/users/7?a=b", "blue", "/one-7?a=b"),
		Entry("two variables", "/users/7/a/b?c=d", "blue", "/people/7/a/b?c=d"),
		Entry("an empty rest", "/users/7/", "blue", "/people/7/"),
		Entry("escapes stay", "/users/a%20b/%C3%A9", "blue", "/people/a%20b/%C3%A9"),
		Entry("escapes that the gateway adds", "/users/{7}", "blue", "/one-%7B7%7D"),
		Entry("an asterisk", "/users/a*b", "blue", "/one-a*b"),
		Entry("every character of fixed text", "/users/-._~!$&'()+,;:@=", "blue", "/one--._~!$&'()+,;:@="),
		Entry("fixed text takes precedence", "/users/7/cart", "green", "/users/7/cart"),
		Entry("an exact path takes precedence", "/users/me", "green", "/users/me"),
		Entry("an empty segment does not match", "/users/", "red", "/users/"),
		Entry("brackets do not match", "/users/[7]", "red", "/users/[7]"),
	)

	It("can be replaced in a redirect", func() {
		Expect(gw.get(host, "/old/7?a=b").Header.Get("Location")).To(Equal("http://" + host + "/new?a=b"))
	})

	DescribeTable("that the API accepts is accepted by Envoy",
		func(prefix, rewrite string) {
			config := `{"match":"template"}`
			if rewrite != "" {
				config = `{"match":"template","rewrite":{"template":"` + rewrite + `"}}`
			}
			a, err := gw.api.Post(limit(), "/service/users/route?wait=applied&timeout=20s", "Route_Name=edge", "Route_prefix="+prefix, "Route_config="+config)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
			post(gw.api, "/service/users/route/edge/upstream/red?wait=applied&timeout=20s")
			Expect(read(gw.api, "/status")).To(ContainSubstring(`"refused":[]`))
			applied(gw.api, http.MethodDelete, "/service/users/route/edge")
		},
		Entry("five names of sixteen letters", "/{aaaaaaaaaaaaaaaa}/{bbbbbbbbbbbbbbbb}/{c}/{d_1}/{E=**}", "/{E}/{d_1}{c}/x"),
		Entry("the maximum number of wildcards", strings.Repeat("/*", 128), ""),
		Entry("every character of fixed text", "/AZaz09-._~%20!$&'()+,;:@=/{id}/", "/-._~%20!$&'()+,;:@=/{id}/"),
		Entry("only the rest", "/**", ""),
		Entry("text after the rest", "/{rest=**}/a/b/", "/{rest}"),
	)

	It("is refused if Envoy would refuse all routes", func() {
		for config, prefix := range map[string]string{
			`{"match":"template"}`:                                  "/{a}/{b}/{c}/{d}/{e}/{f}",
			`{"match":"template","rewrite":{"template":"/{name}"}}`: "/users/{id}",
		} {
			a, err := gw.api.Post(limit(), "/service/users/route", "Route_Name=bad", "Route_prefix="+prefix, "Route_config="+config)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusBadRequest), a.Body)
		}
	})
})
