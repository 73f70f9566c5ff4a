package policies_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// introspecting is the server of docs/jwt.md: it asks an issuer about a token (RFC 7662).
func introspecting(issuer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		var said struct {
			Active bool   `json:"active"`
			Sub    string `json:"sub"`
			Aud    string `json:"aud"`
		}
		resp, err := http.PostForm(issuer, url.Values{"token": {token}}) //nolint:noctx // a server of a spec
		if err == nil {
			err = json.NewDecoder(resp.Body).Decode(&said)
			_ = resp.Body.Close()
		}
		if err != nil || !said.Active || said.Aud != "shop" || r.Header.Get("Cookie") != "" {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-User", said.Sub)
	}
}

var _ = Describe("An opaque token", func() {
	It("is introspected by a server that an http_filter_extauthz asks", func() {
		var asked atomic.Int32
		issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			answers := map[string]string{
				"good": `{"active":true,"sub":"ann","aud":"shop"}`, "another program's": `{"active":true,"sub":"ann","aud":"cart"}`,
			}
			if answers[r.PostFormValue("token")] == "" {
				_, _ = w.Write([]byte(`{"active":false}`)) // with the status 200
				return
			}
			_, _ = w.Write([]byte(answers[r.PostFormValue("token")]))
		}))
		DeferCleanup(issuer.Close)
		w := newWorld(extAuthz())
		w.startUpstream("introspection", introspecting(issuer.URL))
		w.configure(`{"upstream":"introspection","path":"/check","request_headers":["authorization"],"upstream_headers":["x-user"]}`)
		w.attach(onShop)
		for _, t := range []tokenTry{
			{"none", "", 401, ""}, {"a good one", "good", 200, "ann"}, {"a wrong one", "bad", 401, ""},
			{"one for others", "another program's", 401, ""},
		} {
			a := w.send(request{what: t.what, header: []string{"X-User: root", "Cookie: a=b", "Authorization: Bearer " + t.token}})
			Expect(a.status).To(Equal(t.status), t.what)
			Expect(a.seen.Get("X-User")).To(Equal(t.user), t.what)
			if t.status == http.StatusUnauthorized {
				Expect(a.header.Get("WWW-Authenticate")).To(Equal(`Bearer error="invalid_token"`), t.what)
			}
		}
		Expect(asked.Load()).To(BeEquivalentTo(4))
	})
})
