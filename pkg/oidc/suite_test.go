package oidc_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/oidc"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestOIDC(t *testing.T) {
	// Which is left alone.
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	RegisterFailHandler(Fail)
	RunSpecs(t, "oidc")
}

var _ = BeforeEach(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
})

// Keys on P-256 (RFC 7517 appendix A.1) and on Curve25519 (RFC 8037 appendix A.2).
const (
	keyP256    = `{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","use":"sig","kid":"1"}`
	keyEd25519 = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	// Those as Envoy gets them.
	setP256 = `{"keys":[{"crv":"P-256","kid":"1","kty":"EC","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`
)

// provider is an identity provider that serves what a spec says, by path.
type provider struct {
	*httptest.Server
	authority *testkit.Authority
	paths     map[string]http.HandlerFunc
	// asked has the requests.
	asked chan *http.Request
}

// startProvider starts one with TLS, at localhost, that behaves well.
func startProvider(o testkit.CertificateOptions) *provider {
	GinkgoHelper()
	if o.Names == nil {
		o.Names = []string{"localhost", "127.0.0.1"}
	}
	ca, err := testkit.NewAuthority("root")
	Expect(err).NotTo(HaveOccurred())
	issued, err := ca.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	pair, err := issued.TLS()
	Expect(err).NotTo(HaveOccurred())
	p := &provider{authority: ca, paths: map[string]http.HandlerFunc{}, asked: make(chan *http.Request, 100)}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked <- r
		if h := p.paths[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	p.Server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	p.Server.EnableHTTP2 = true
	p.Server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.StartTLS()
	DeferCleanup(p.Close)
	p.serve("/.well-known/openid-configuration", p.document(p.issuer()))
	p.serve("/keys", `{"keys":[`+keyP256+`]}`)
	return p
}

func (p *provider) port() int { return p.Listener.Addr().(*net.TCPAddr).Port }

// issuer is what the provider calls itself.
func (p *provider) issuer() string { return fmt.Sprintf("https://localhost:%d", p.port()) }

// document is the discovery document of an issuer at this provider, with further fields
// in the place of its own.
func (p *provider) document(issuer string, fields ...string) string {
	doc := map[string]any{
		"issuer": issuer, "authorization_endpoint": p.issuer() + "/auth", "token_endpoint": p.issuer() + "/token",
		"jwks_uri": p.issuer() + "/keys", "end_session_endpoint": p.issuer() + "/end",
	}
	for i := 0; i < len(fields); i += 2 {
		doc[fields[i]] = fields[i+1]
	}
	text, _ := json.Marshal(doc)
	return string(text)
}

func (p *provider) serve(path, text string) {
	p.paths[path] = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func (p *provider) source() model.ProviderSource {
	return model.ProviderSource{Issuer: p.issuer(), Discover: true}
}

// client trusts the provider, and may ask on the loopback.
func (p *provider) client(change ...func(*oidc.Options)) *oidc.Client {
	GinkgoHelper()
	o := oidc.Options{Authorities: p.authority.PEM, Rules: oidc.Rules{Allow: entries("127.0.0.0/8", "::1")}}
	for _, c := range change {
		c(&o)
	}
	return oidc.NewClient(o)
}

func entries(texts ...string) (list []egress.Entry) {
	GinkgoHelper()
	for _, text := range texts {
		e, err := egress.ParseEntry(text)
		Expect(err).NotTo(HaveOccurred())
		list = append(list, e)
	}
	return list
}
