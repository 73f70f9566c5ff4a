package attack_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// preflightTry is a request that pretends to be a preflight, which needs no token.
type preflightTry struct {
	line    string
	headers []string
	status  int
	// allows is the origin that may read the answer; empty means none.
	allows string
}

func preflightTries() []preflightTry {
	const asks, post, other = "Origin: https://a.test", "Access-Control-Request-Method: POST", "Origin: https://b.test"
	return []preflightTry{
		{"OPTIONS /", []string{asks, post}, 200, "https://a.test"},
		{"OPTIONS /", nil, 401, ""},
		{"OPTIONS /", []string{asks}, 401, "https://a.test"},
		{"OPTIONS /", []string{post}, 401, ""},
		{"OPTIONS /", []string{other, post}, 401, ""},
		{"OPTIONS /", []string{"Origin: null", post}, 401, ""},
		{"OPTIONS /", []string{"Origin: https://a.test.evil.test", post}, 401, ""},
		{"OPTIONS /", []string{"Origin: https://a.test@evil.test", post}, 401, ""},
		{"OPTIONS /", []string{"Origin: HTTPS://A.TEST", post}, 401, ""},
		{"OPTIONS /", []string{asks, other, post}, 401, ""},
		{"OPTIONS /", []string{asks, "Access-Control-Request-Method: "}, 401, "https://a.test"},
		{"OPTIONS /", []string{asks, "Access-Control-Request-Method: POST, DELETE"}, 200, "https://a.test"},
		{"OPTIONS /", []string{asks, post, "X-HTTP-Method-Override: POST"}, 200, "https://a.test"},
		{"OPTIONS /", []string{asks, post, "X-HTTP-Method: DELETE"}, 200, "https://a.test"},
		{"OPTIONS /", []string{asks, post, "Content-Length: 4", "", "evil"}, 200, "https://a.test"},
		{"OPTIONS /admin/..;/", []string{asks, post}, 200, "https://a.test"},
		{"OPTIONS *", []string{asks, post}, 404, ""},
		{"OPTIONS http://preflights.test/", []string{asks, post}, 200, "https://a.test"},
		{"options /", []string{asks, post}, 400, ""},
		{"Options /", []string{asks, post}, 400, ""},
		{"POST /", []string{asks, post}, 401, "https://a.test"},
		{"POST /", []string{asks, post, "X-HTTP-Method-Override: OPTIONS"}, 401, "https://a.test"},
		{"TRACE /", []string{asks, post}, 401, "https://a.test"},
		{"HEAD /", []string{asks, post}, 401, "https://a.test"},
		{"CONNECT preflights.test:80", []string{asks, post}, 404, ""},
	}
}

var _ = Describe("A preflight", func() {
	It("reaches no backend, and lets nothing else bypass a token", func(ctx SpecContext) {
		issuer := testkit.NewTokenIssuer("https://issuer.test", "one")
		gw.add(ctx, "/filter", "Filter_name=cors", "Filter_type=vh_filter_cors", `Filter_config={"origins":["https://a.test"],"methods":["POST"]}`)
		gw.add(ctx, "/filter", "Filter_name=tokens", "Filter_type=http_filter_jwt", `Filter_config={"issuer":"https://issuer.test","jwks":`+issuer.JWKS()+`}`)
		gw.addService(ctx, "preflights", "preflights.test")
		gw.link(ctx, "/service/preflights/filter/cors")
		gw.link(ctx, "/service/preflights/filter/tokens")
		gw.link(ctx, "/proxy/gw/service/preflights?wait=applied")
		before := gw.blue.Requests()
		for _, t := range preflightTries() {
			about := t.line + " " + strings.Join(t.headers, ", ")
			a := gw.raw(ctx, append([]string{t.line + " HTTP/1.1", "Host: preflights.test"}, t.headers...)...)
			Expect(a.Status).To(Equal(t.status), about)
			Expect(a.Header.Get("Access-Control-Allow-Origin")).To(Equal(t.allows), about)
			Expect(gw.blue.Requests()).To(Equal(before), about)
		}
	}, SpecTimeout(time.Minute))
})

var _ = Describe("A preflight of an origin that is not listed", func() {
	It("reaches no backend, and is allowed nothing", func(ctx SpecContext) {
		gw.add(ctx, "/filter", "Filter_name=pages", "Filter_type=vh_filter_cors", `Filter_config={"origins":["https://a.test"],"methods":["POST"]}`)
		gw.addService(ctx, "pages", "pages.test")
		gw.link(ctx, "/service/pages/filter/pages")
		gw.link(ctx, "/proxy/gw/service/pages?wait=applied")
		before := gw.blue.Requests()
		for _, origin := range []string{"https://b.test", "null", "https://a.test.evil.test", "HTTPS://A.TEST", "https://a.test\r\nOrigin: https://b.test"} {
			a := gw.raw(ctx, "OPTIONS / HTTP/1.1", "Host: pages.test", "Origin: "+origin, "Access-Control-Request-Method: POST")
			Expect(a.Status).To(Equal(204), origin)
			for name := range a.Header {
				Expect(name).NotTo(HavePrefix("Access-Control-"), origin)
			}
		}
		Expect(gw.blue.Requests()).To(Equal(before))
	}, SpecTimeout(time.Minute))
})
