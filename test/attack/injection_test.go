package attack_test

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("What a client sends", func() {
	// on creates a service with a filter.
	on := func(ctx context.Context, name, kind, config string) {
		GinkgoHelper()
		gw.add(ctx, "/filter", "Filter_name="+name, "Filter_type="+kind, "Filter_config="+config)
		gw.addService(ctx, name, name+".test")
		gw.link(ctx, "/service/"+name+"/filter/"+name)
		gw.link(ctx, "/proxy/gw/service/"+name+"?wait=applied")
	}
	seenBy := func(a testkit.Answer) testkit.Echo {
		GinkgoHelper()
		var echo testkit.Echo
		Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed(), a.Body)
		return echo
	}

	It("never becomes a header in a redirect", func(ctx SpecContext) {
		on(ctx, "moved", "route_filter_redirect", `{"prefix":"/v2/"}`)
		on(ctx, "matched", "route_filter_redirect", `{"regex":"^/(.*)","substitution":"/v2/\\1"}`)
		for _, host := range []string{"moved.test", "matched.test"} {
			for _, target := range []string{"a%0d%0aSet-Cookie:%20a=b", "a%0aX-Admin:1", "a?b=%0d%0aSet-Cookie:%20a=b", "a%250d%250aSet-Cookie:a", "%e5%98%8d%e5%98%8aSet-Cookie:a"} {
				a := gw.raw(ctx, "GET /"+target+" HTTP/1.1", "Host: "+host)
				Expect(a.Header["Location"]).To(Equal([]string{"http://" + host + "/v2/" + target}), host+" "+target)
				Expect(a.Header).NotTo(Or(HaveKey("Set-Cookie"), HaveKey("X-Admin")), host+" "+target)
			}
		}
	}, SpecTimeout(time.Minute))

	It("does not change a fixed header, even one that looks like a template to Envoy", func(ctx SpecContext) {
		on(ctx, "fixed", "route_filter_headers", `{"request":{"set":{"x-fixed":"%REQ(x-evil)% 100%","x-team":"shop"}},"response":{"set":{"x-out":"%REQ(x-evil)%"}}}`)
		a := gw.raw(ctx, "GET / HTTP/1.1", "Host: fixed.test", "X-Evil: evil", "X-Team: other", "x-team: another", "Connection: x-team, x-fixed") // CVE-2024-45410
		Expect(a.Status).To(Equal(http.StatusOK))
		Expect(a.Header["X-Out"]).To(Equal([]string{"%REQ(x-evil)%"}))
		echo := seenBy(a)
		Expect(echo.Headers["X-Fixed"]).To(Equal([]string{"%REQ(x-evil)% 100%"}))
		Expect(echo.Headers["X-Team"]).To(Equal([]string{"shop"}))
	}, SpecTimeout(time.Minute))

	It("may choose the Host if that is configured, and nothing more", func(ctx SpecContext) {
		on(ctx, "chosen", "route_filter_host_rewrite", `{"from_header":"x-tenant"}`)
		for value, host := range map[string]string{"a.test": "a.test", "%REQ(x-evil)%": "%REQ(x-evil)%", "a.test\tb": "", "a.test/../b": "", "a.test\rX-Admin: 1": ""} {
			a := gw.raw(ctx, "GET / HTTP/1.1", "Host: chosen.test", "X-Evil: evil.test", "X-Tenant: "+value)
			if host == "" { // the backend, rather than Envoy, refuses it
				Expect(a.Status).To(Equal(http.StatusBadRequest), value)
				continue
			}
			echo := seenBy(a)
			Expect(echo.Host).To(Equal(host), value)
			Expect(echo.Headers).NotTo(HaveKey("X-Admin"), value)
		}
	}, SpecTimeout(time.Minute))
})
