package explain_test

import (
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

// loginSeeds times requestsPerSeed are 1,600 requests.
const loginSeeds = 8

// addLogins adds logins to some services, and makes some of their routes public.
func (g *generator) addLogins(objects []model.Object) []model.Object {
	idp := model.NewUpstream()
	idp.Name, idp.IP, idp.Port = "idp", "127.0.0.1", g.backend
	objects = append(objects, idp, &model.Secret{Name: "cookies", Value: "4Bk0Zc3DqDZcHbQ7rX9Yw5h6q0Ku1v8m2Tn4Lx3Ss1E="})
	for _, o := range objects {
		switch o := o.(type) {
		case *model.Route:
			o.Config.Public = g.chance(4)
		case *model.Service:
			if g.chance(3) {
				continue
			}
			redirect, signOut := pick(g, "/callback", "/a", "/shop/callback"), pick(g, `"/logout"`, `"/shop"`)
			if o.FQDN == "*" {
				redirect = "https://site.test" + redirect
			}
			f := &model.Filter{Name: "login-" + o.Name, Type: model.FilterOIDC, Config: model.JSON(`{"client_id": "c", "client_secret": "s", "cookie_secret": "cookies", "upstream": "idp",
				"authorization_endpoint": "` + pick(g, "http://idp.test/auth", "https://idp.test/auth?prompt=consent") + `", "token_endpoint": "http://idp.test/token",
				"redirect_uri": "` + redirect + `", "logout_uri": ` + signOut + `}`)}
			objects = append(objects, f, &model.ServiceFilter{Service: o.Name, Filter: f.Name})
			g.paths = append(g.paths, "/callback", "/callback", "/shop/callback", "/logout", "/shop")
		}
	}
	return objects
}

// loginRequest returns a request that may or may not be a browser's.
func (g *generator) loginRequest() explain.Request {
	r := g.request()
	for g.chance(4) {
		r.Headers = append(r.Headers, pick(g,
			explain.Header{Name: "accept", Value: "application/json"}, explain.Header{Name: "Accept", Value: "text/html,application/json"},
			explain.Header{Name: "accept", Value: "application/problem+json; q=1"}, explain.Header{Name: "accept", Value: "text/event-stream"},
			explain.Header{Name: "X-Requested-With", Value: "XMLHttpRequest"}, explain.Header{Name: "authorization", Value: "Bearer x"},
			explain.Header{Name: "sec-fetch-mode", Value: "cors"}, explain.Header{Name: "Sec-Fetch-Mode", Value: "navigate"},
			explain.Header{Name: "cookie", Value: "session=1; OauthHMAC=x; OauthExpires=1"}))
	}
	if g.chance(10) {
		r.Target += pick(g, "?", "&") + "code=x&state=x"
	}
	return r
}

var _ = Describe("Explain", func() {
	It("requires a login where Envoy does, every time", func(ctx SpecContext) {
		l := newLab(ctx)
		c := &client{addr: fmt.Sprintf("127.0.0.1:%d", l.port)}
		DeferCleanup(c.close)
		counts := map[string]int{}
		first, last := seeds(os.Getenv, loginSeeds)
		var wrong []string
		for seed := first; seed < last; seed++ {
			g := newGenerator(seed, l.backend)
			have := stateOf(l.publish(g.addLogins(g.configuration())))
			l.live()
			for n := range requestsPerSeed {
				r := g.loginRequest()
				a, err := explain.Explain(have, r)
				Expect(err).NotTo(HaveOccurred())
				got, err := c.send(r)
				Expect(err).NotTo(HaveOccurred())
				counts[a.Code]++
				switch a.Code {
				case "login_required", "signed_out": // it contains the request
					got.location, _, _ = strings.Cut(got.location, "?")
					if a.Code == "signed_out" {
						got.location = ""
					}
				case "login_refused", "login_callback": // the page, or the problem
					got.body = ""
				}
				if d := disagreement(a, r.Method, got); d != "" {
					wrong = append(wrong, fmt.Sprintf("seed %d request %d: %q\n%s\nbecause %s", seed, n, bytesOf(r), d, a.Message))
				}
			}
		}
		AddReportEntry("answers", fmt.Sprint(counts))
		for _, code := range []string{"login_required", "login_refused", "login_callback", "signed_out", explain.Forwarded} {
			Expect(counts[code]).To(BeNumerically(">", 5), "%s among %v", code, counts)
		}
		if len(wrong) > 0 {
			Fail(fmt.Sprintf("%d disagree (GATEHOUSE_TEST_FIRST_SEED=N GATEHOUSE_TEST_SEEDS=1 repeats one):\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 12)], "\n\n")))
		}
	})
})
