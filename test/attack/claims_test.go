package attack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// claimTry is a claim that a user has chosen, such as a name, in a token that the issuer has signed.
type claimTry struct {
	what  string
	claim any
	// status is that of the answer, and header what the backend receives if it is 200; nil means
	// nothing.
	status int
	header []string
}

func claimTries() []claimTry {
	return []claimTry{
		{"a line more (CVE-2023-27493)", "ann\r\nX-Admin: 1", 503, nil},
		{"a line feed", "ann\nX-Admin: 1", 503, nil},
		{"a carriage return", "ann\rX-Admin: 1", 503, nil},
		{"a request more", "ann\r\n\r\n" + hidden, 503, nil},
		{"NUL (CVE-2019-9900)", "ann\x00root", 503, nil},
		{"a command of Envoy", "%REQ(x-evil)%", 200, []string{"%REQ(x-evil)%"}},
		{"two values", "ann, root", 200, []string{"ann, root"}},
		{"a letter that is not ASCII", "Jörg", 200, []string{"Jörg"}},
		{"spaces around", " ann ", 200, []string{"ann"}},
		{"nothing", "", 200, nil},
		{"a number", 7, 200, []string{"7"}},
		{"a truth", true, 200, []string{"true"}},
		{"a list", []string{"ann", "root"}, 200, []string{testkit.Base64([]byte(`["ann","root"]`)) + "="}},
		{"an object", object{"ann": "root"}, 200, []string{testkit.Base64([]byte(`{"ann":"root"}`)) + "="}},
		{"none", nil, 200, nil},
	}
}

var _ = Describe("A claim that is sent to a backend in a header", func() {
	It("remains one value of that header, whatever it contains", func(ctx SpecContext) {
		issuer := testkit.NewTokenIssuer("https://issuer.test", "one")
		gw.add(ctx, "/filter", "Filter_name=claims", "Filter_type=http_filter_jwt",
			`Filter_config={"issuer":"https://issuer.test","jwks":`+issuer.JWKS()+`,"claim_headers":[{"claim":"name","header":"x-user"}]}`)
		gw.addService(ctx, "claims", "claims.test")
		gw.link(ctx, "/service/claims/filter/claims")
		gw.link(ctx, "/proxy/gw/service/claims?wait=applied")
		base := testkit.API{URL: fmt.Sprintf("http://127.0.0.1:%d", gw.port)}
		for _, t := range claimTries() {
			before := gw.blue.Requests()
			a := try(ctx, base, http.MethodGet, "/", "", "Host: claims.test", "X-Evil: 1", "X-User: root", "Authorization: Bearer "+issuer.Token(object{"name": t.claim}))
			Expect(a.Status).To(Equal(t.status), "%s: %s", t.what, a.Body)
			if a.Status != http.StatusOK {
				Expect(gw.blue.Requests()).To(Equal(before), t.what)
				continue
			}
			Expect(gw.blue.Requests()).To(Equal(before+1), t.what)
			var echo testkit.Echo
			Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed())
			Expect(echo.Headers["X-User"]).To(Equal(t.header), t.what)
			Expect(echo.Headers).NotTo(HaveKey("X-Admin"), t.what)
			Expect(echo.Path).To(Equal("/"), t.what)
		}
	}, SpecTimeout(time.Minute))
})
