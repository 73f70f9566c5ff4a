package testkit

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
)

// Keys of providers: P-256 (RFC 7517 appendix A.1) and Curve25519 (RFC 8037 appendix
// A.2).
const (
	KeyP256    = `{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","use":"sig","kid":"1"}`
	KeyEd25519 = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
)

// documentPath is the path of discovery documents.
const documentPath = "/.well-known/openid-configuration"

// Provider publishes what a spec sets: a discovery document and keys, over TLS. Nobody
// can log in there.
type Provider struct {
	*httptest.Server
	Authority *Authority
	// Asked receives the requests.
	Asked chan *http.Request

	mu    sync.Mutex
	paths map[string]http.HandlerFunc
}

// StartProvider starts a correct provider, with a certificate; the caller closes it.
// Without names, the certificate is for localhost and 127.0.0.1.
func StartProvider(o CertificateOptions) (*Provider, error) {
	if o.Names == nil {
		o.Names = []string{"localhost", "127.0.0.1"}
	}
	ca, err := NewAuthority("root")
	if err != nil {
		return nil, err
	}
	issued, err := ca.Issue(o)
	if err != nil {
		return nil, err
	}
	pair, err := issued.TLS()
	if err != nil {
		return nil, err
	}
	p := &Provider{Authority: ca, paths: map[string]http.HandlerFunc{}, Asked: make(chan *http.Request, 10_000)}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Asked <- r
		p.mu.Lock()
		h := p.paths[r.URL.Path]
		p.mu.Unlock()
		if h == nil {
			h = http.NotFound
		}
		h(w, r)
	}))
	p.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	p.EnableHTTP2 = true
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.StartTLS()
	p.SetDocument(p.Document(p.Issuer()))
	p.SetKeys(KeyP256)
	return p, nil
}

// Port returns its port on 127.0.0.1.
func (p *Provider) Port() int { return p.Listener.Addr().(*net.TCPAddr).Port }

// Issuer returns the provider's issuer.
func (p *Provider) Issuer() string { return fmt.Sprintf("https://localhost:%d", p.Port()) }

// Document returns a discovery document with the endpoints of this provider. fields are
// names and values that replace its own.
func (p *Provider) Document(issuer string, fields ...string) string {
	doc := map[string]any{
		"issuer": issuer, "authorization_endpoint": p.Issuer() + "/auth", "token_endpoint": p.Issuer() + "/token",
		"jwks_uri": p.Issuer() + "/keys", "end_session_endpoint": p.Issuer() + "/end",
	}
	for i := 0; i < len(fields); i += 2 {
		doc[fields[i]] = fields[i+1]
	}
	text, _ := json.Marshal(doc) // of texts
	return string(text)
}

// Handle sets the handler of a path; nil removes it.
func (p *Provider) Handle(path string, h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paths[path] = h
}

// HandleDocument sets the handler of the discovery document.
func (p *Provider) HandleDocument(h http.HandlerFunc) { p.Handle(documentPath, h) }

// Serve answers a path with a text.
func (p *Provider) Serve(path, text string) {
	p.Handle(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// SetDocument sets the discovery document.
func (p *Provider) SetDocument(text string) { p.Serve(documentPath, text) }

// SetKeys sets the keys.
func (p *Provider) SetKeys(keys ...string) {
	text := `{"keys":[`
	for i, k := range keys {
		if i > 0 {
			text += ","
		}
		text += k
	}
	p.Serve("/keys", text+"]}")
}
