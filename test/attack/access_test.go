package attack_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// accessTry is a request to a service where GET /public and everything below it is allowed, or
// everything except what is below /admin, or both.
type accessTry struct {
	method, target string
	headers        []string
	// allowed and denied are the statuses with the first list and with the second.
	allowed, denied int
}

func accessTries() []accessTry {
	return []accessTry{
		{"GET", "/public/a", nil, 200, 200},
		{"GET", "/admin", nil, 403, 403},
		{"GET", "//admin", nil, 403, 403},          // CVE-2021-29492, CVE-2021-43557
		{"GET", "/public/../admin", nil, 403, 403}, // CVE-2019-9901
		{"GET", "/public/..//admin/x", nil, 403, 403},
		{"GET", "/public/%2e%2e/admin", nil, 403, 403},
		{"GET", "/public/..;/admin", nil, 403, 403}, // CVE-2026-73511
		{"GET", "/public/..;x=1/admin", nil, 403, 403},
		{"GET", "/public/%2e%2e;/admin", nil, 400, 400},
		{"GET", "/public/.%2e;x=1/admin", nil, 400, 400},
		{"GET", "/%2e;/admin", nil, 400, 400},
		{"GET", "/public?x=/..;/admin", nil, 200, 200},
		{"GET", "http://HOST/admin", nil, 403, 403},
		{"GET", "http://HOST/public/%2e%2e/admin", nil, 403, 403},
		{"GET", "http://HOST//admin", nil, 403, 403},
		{"GET", "http://HOST", nil, 403, 200},
		{"GET", "/admin%00", nil, 400, 400}, // CVE-2019-9900
		{"GET", "/public%00/../admin", nil, 400, 400},
		{"GET", "/public%2f..%2fadmin", nil, 307, 307},
		{"GET", "/public/..%5cadmin", nil, 307, 307},
		{"GET", `/public\..\admin`, nil, 403, 403},
		{"GET", "/%61dmin", nil, 403, 403},
		{"GET", "/./admin/.", nil, 403, 403},
		{"GET", "/ADMIN/x", nil, 403, 403},
		{"GET", "/Admin", nil, 403, 403},
		{"GET", "/PUBLIC", nil, 403, 200},
		{"GET", "/admin;x=1", nil, 403, 403},
		{"GET", "/admin;x/y", nil, 403, 403},
		{"GET", "/admin/", nil, 403, 403},
		{"GET", "/admin?/public", nil, 403, 403},
		{"GET", "/admin#/public", nil, 400, 400},
		{"GET", "/?x=/public", nil, 403, 200},
		{"GET", "/public;/../admin", nil, 403, 403},
		{"GET", "/public2", nil, 403, 200},
		// What docs/rbac.md says about backends that interpret a path further.
		{"GET", "/admin.", nil, 403, 200},
		{"GET", "/admin.json", nil, 403, 200},
		{"GET", "/admin%20", nil, 403, 200},
		{"GET", "/%2561dmin", nil, 403, 200},
		{"HEAD", "/public", nil, 403, 200},
		{"get", "/public", nil, 400, 400},
		{"GETX", "/public", nil, 400, 400},
		{"POST", "/public", nil, 403, 200},
		{"POST", "/public", []string{"X-HTTP-Method-Override: GET"}, 403, 200},
		{"GET", "/public", []string{"X-HTTP-Method-Override: DELETE"}, 403, 200},
		{"GET", "/public", []string{"X-HTTP-Method: DELETE"}, 403, 200},
		{"GET", "/public", []string{"x-method-override: DELETE"}, 403, 200},
		{"GET", "/admin", []string{"X-Original-Url: /public", "X-Rewrite-Url: /public"}, 403, 403},
		{"GET", "/admin", []string{"X-Envoy-Original-Path: /public"}, 403, 403}, // CVE-2023-27487
		{"GET", "/admin", []string{"X-Forwarded-Prefix: /public"}, 403, 403},    // GHSA-6384-m2mw-rf54
		{"GET", "/admin", []string{"X_Original_Url: /public"}, 400, 400},        // GHSA-5m6w-wvh7-57vm
		{"CONNECT", "HOST:80", nil, 404, 404},                                   // CVE-2026-73547
		{"OPTIONS", "/admin", []string{"Origin: https://a.test", "Access-Control-Request-Method: GET"}, 403, 403},
	}
}

var _ = Describe("Rules about who may do what", func() {
	It("apply to a path and a method in any form", func(ctx SpecContext) {
		for name, config := range map[string]string{
			"allowed": `{"allow":[{"methods":["GET"],"paths":[{"segment":"/public"}]}]}`,
			"denied":  `{"allow":[{}],"deny":[{"paths":[{"segment":"/admin"}]}]}`,
		} {
			gw.add(ctx, "/filter", "Filter_name="+name, "Filter_type=vh_filter_rbac", "Filter_config="+config)
			gw.addService(ctx, name, name+".test")
			gw.link(ctx, "/service/"+name+"/filter/"+name)
			gw.link(ctx, "/proxy/gw/service/"+name+"?wait=applied")
		}
		for _, t := range some(60, accessTries()) {
			for host, want := range map[string]int{"allowed.test": t.allowed, "denied.test": t.denied} {
				a := gw.raw(ctx, append([]string{t.method + " " + strings.ReplaceAll(t.target, "HOST", host) + " HTTP/1.1", "Host: " + host}, t.headers...)...)
				Expect(a.Status).To(Equal(want), "%s %s %s %q", host, t.method, t.target, t.headers)
			}
		}
	}, SpecTimeout(2*time.Minute))
})
