package attack_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// hostileKeys is the answer of an issuer instead of its keys, and what is reported about it.
type hostileKeys struct {
	what   string
	answer http.HandlerFunc
	why    string
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func redirectTo(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}
}

func answer(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// hang answers nothing, or only the beginning of an answer.
func hang(begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if begin != "" {
			_, _ = io.WriteString(w, begin)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

func endless(w http.ResponseWriter, _ *http.Request) {
	for block := []byte(`{"keys":[` + strings.Repeat(" ", 64<<10)); ; {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func hostileAnswers(good string) []hostileKeys {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	Expect(err).NotTo(HaveOccurred())
	n := testkit.Base64(weak.N.Bytes())
	one := strings.TrimSuffix(strings.TrimPrefix(good, `{"keys":[`), "]}")
	const nothing = "has 1 keys, none of which can be used"
	return []hostileKeys{
		{"a giant", text(`{"keys":[],"x":"` + strings.Repeat("a", 600<<10) + `"}`), "is larger than 512 KiB"},
		{"an answer without an end", endless, "is larger than 512 KiB"},
		{"no answer", hang(""), "did not arrive within 5s"},
		{"half an answer", hang(`{"keys":[`), "did not arrive within 5s"},
		{"a redirect to itself", redirectTo("/"), "redirects to"},
		{"a redirect to a place that is not meant", redirectTo("http://169.254.169.254/latest/keys"), "redirects to"},
		{"a page", text("<html>"), "is HTML or XML in place of JSON"},
		{"a list", text("[]"), "is not a JSON object"},
		{"nothing", text(""), "is not a JSON object"},
		{"deep JSON (CVE-2026-48042)", text(`{"keys":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"), "is not a JSON object"},
		{"keys that are no list", text(`{"keys":{}}`), "has no list"},
		{"no keys", text(`{"keys":[]}`), "has 0 keys, none of which can be used"},
		{"a key that is too short", text(`{"keys":[{"kty":"RSA","kid":"one","n":"` + n + `","e":"AQAB"}]}`), nothing},
		{"a symmetric key (CVE-2026-39999)", text(`{"keys":[{"kty":"oct","kid":"one","alg":"HS256","k":"c2VjcmV0"}]}`), nothing},
		{"a key to encrypt with", text(strings.Replace(good, `"kty"`, `"use":"enc","kty"`, 1)), nothing},
		{"a point that is on no curve", text(`{"keys":[{"kty":"EC","crv":"P-256","kid":"one","x":"` + strings.Repeat("A", 43) + `","y":"` + strings.Repeat("A", 43) + `"}]}`), nothing},
		{"a private key", text(strings.Replace(good, `"kty"`, `"d":"AQAB","kty"`, 1)), "publishes the private half of key 1"},
		{"too many keys", text(`{"keys":[` + strings.Repeat(one+",", 100) + one + `]}`), "has 101 keys; at most 100"},
		{"packed keys", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, gzipped(good))
		}, "is compressed (gzip)"},
		{"404", answer(404), "does not exist (404)"},
		{"403", answer(403), "is not public (403)"},
		{"500", answer(500), "is answered with 500"},
		{"204", answer(204), "is answered with 204"},
	}
}

// startIssuer runs a server that answers requests for keys, behind the upstream "issuer", until
// the end of the spec.
func startIssuer(ctx SpecContext, answer http.HandlerFunc) {
	GinkgoHelper()
	s := httptest.NewServer(answer)
	DeferCleanup(s.Close)
	at, err := url.Parse(s.URL)
	Expect(err).NotTo(HaveOccurred())
	gw.add(ctx, "/upstream", "Upstream_name=issuer", "Upstream_ip="+at.Hostname(), "Upstream_port="+at.Port())
}

// addTokens creates a route of the service "keys" that requires tokens, with their keys at a path.
func addTokens(ctx SpecContext, name string) {
	GinkgoHelper()
	gw.add(ctx, "/filter", "Filter_name="+name, "Filter_type=http_filter_jwt", `Filter_config={"issuer":"https://issuer.test","jwks_uri":"http://issuer.test/`+name+`","upstream":"issuer"}`)
	gw.add(ctx, "/service/keys/route", "Route_Name="+name, "Route_prefix=/"+name, `Route_config={"match":"segment"}`)
	gw.link(ctx, "/service/keys/route/"+name+"/upstream/blue")
	gw.link(ctx, "/service/keys/route/"+name+"/filter/"+name)
}

var _ = Describe("The keys of an issuer", func() {
	issuer, other := testkit.NewTokenIssuer("https://issuer.test", "one"), testkit.NewTokenIssuer("https://issuer.test", "two")
	asks := func(ctx SpecContext, path, token string) func() int {
		base := testkit.API{URL: fmt.Sprintf("http://127.0.0.1:%d", gw.port)}
		return func() int {
			return try(ctx, base, http.MethodGet, path, "", "Host: keys.test", "Authorization: Bearer "+token).Status
		}
	}

	It("are not read from any other answer, and the previous ones remain in use (CVE-2026-31837)", func(ctx SpecContext) {
		tries := some(16, hostileAnswers(issuer.JWKS()))
		turned := atomic.Bool{}
		startIssuer(ctx, func(w http.ResponseWriter, r *http.Request) {
			for i, t := range tries {
				if r.URL.Path == fmt.Sprint("/never", i) || turned.Load() && r.URL.Path == fmt.Sprint("/was", i) {
					t.answer(w, r)
					return
				}
			}
			text(issuer.JWKS())(w, r)
		})
		gw.add(ctx, "/service", "Service_Name=keys", "fqdn=keys.test")
		for i := range tries {
			addTokens(ctx, fmt.Sprint("never", i))
			addTokens(ctx, fmt.Sprint("was", i))
		}
		gw.link(ctx, "/proxy/gw/service/keys?wait=applied")
		good, unknown := issuer.Token(object{"sub": "ann"}), other.Token(object{"sub": "ann"})
		for i, t := range tries {
			Eventually(asks(ctx, fmt.Sprint("/was", i), good)).WithContext(ctx).Should(Equal(http.StatusOK), t.what)
		}
		turned.Store(true)
		for i, t := range tries {
			Expect(asks(ctx, fmt.Sprint("/was", i), unknown)()).To(Equal(http.StatusUnauthorized), t.what)
		}
		for i, t := range tries {
			for _, name := range []string{fmt.Sprint("never", i), fmt.Sprint("was", i)} {
				Eventually(func() string {
					a, err := gw.API.Get(ctx, "/filter/"+name)
					Expect(err).NotTo(HaveOccurred())
					return a.Body
				}).WithContext(ctx).Should(And(ContainSubstring("ProviderFailing"), ContainSubstring(t.why)), "%s of %s", t.what, name)
			}
			Expect(asks(ctx, fmt.Sprint("/never", i), good)()).To(Equal(http.StatusServiceUnavailable), t.what)
			Expect(asks(ctx, fmt.Sprint("/was", i), good)()).To(Equal(http.StatusOK), t.what)
			Expect(asks(ctx, fmt.Sprint("/was", i), unknown)()).To(Equal(http.StatusUnauthorized), t.what)
		}
	}, NodeTimeout(4*time.Minute))

	It("are fetched again when a token names a new one, and a flood of such tokens causes no more fetches", func(ctx SpecContext) {
		var asked atomic.Int64
		var keys atomic.Value
		keys.Store(issuer.JWKS())
		startIssuer(ctx, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			text(keys.Load().(string))(w, r)
		})
		gw.add(ctx, "/service", "Service_Name=keys", "fqdn=keys.test")
		addTokens(ctx, "flood")
		gw.link(ctx, "/proxy/gw/service/keys?wait=applied")
		good, unknown := asks(ctx, "/flood", issuer.Token(nil)), asks(ctx, "/flood", other.Token(nil))
		Eventually(good).WithContext(ctx).Should(Equal(http.StatusOK))
		Expect(asked.Load()).To(Equal(int64(1)))
		flood := func() {
			GinkgoHelper()
			for range 200 {
				Expect(unknown()).To(Equal(http.StatusUnauthorized))
			}
		}
		flood()
		Eventually(asked.Load).WithContext(ctx).Should(Equal(int64(2)))
		flood()
		Expect(asked.Load()).To(Equal(int64(2)), "less than ten seconds later")

		keys.Store(other.JWKS())
		Eventually(unknown).WithContext(ctx).Should(Equal(http.StatusOK))
		Expect(asked.Load()).To(Equal(int64(3)))
		Expect(good()).To(Equal(http.StatusUnauthorized), "its key is withdrawn")
	}, NodeTimeout(2*time.Minute))
})
