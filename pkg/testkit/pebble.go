package testkit

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// PebbleOptions describe a Pebble.
type PebbleOptions struct {
	// HTTPPort is where it asks hosts, all of which have the address 127.0.0.1.
	HTTPPort int
	// Validity is how long certificates are valid, in seconds; 0 means 90 days.
	Validity int
	// Profiles are how long certificates of other profiles than "default" are valid, in seconds.
	Profiles map[string]int
	// ExternalAccounts are the keys in base64url of the accounts that it requires, by their names; nil requires none.
	ExternalAccounts map[string]string
	// Env are more environment variables, such as PEBBLE_WFE_NONCEREJECT=30.
	Env []string
}

// Pebble is a certificate authority that speaks ACME (RFC 8555), with its own DNS. Clients reach it through a proxy that
// counts their requests, and can answer in its place.
type Pebble struct {
	*Process
	// Directory is the URL for clients, and Authority has signed its certificate.
	Directory string
	Authority *Authority
	// Resolver is the address of its DNS server, and DNSManagement the URL where records of that are set (set-txt,
	// clear-txt).
	Resolver, DNSManagement string

	dns        *Process
	front      *http.Server
	management string
	// start runs Pebble itself, whose certificate own has signed; inside is its address.
	start  func() (*Process, error)
	own    *Authority
	inside string

	mu     sync.Mutex
	counts map[string]int
	answer func(w http.ResponseWriter, r *http.Request) bool
}

// The paths of Pebble, for Pebble.Count.
const (
	PebbleNewAccount  = "/sign-me-up"
	PebbleNewOrder    = "/order-plz"
	PebbleFinalize    = "/finalize-order/"
	PebbleChallenge   = "/chalZ/"
	PebbleCertificate = "/certZ/"
	PebbleRenewalInfo = "/draft-ietf-acme-ari-03/renewalInfo/"
)

// StartPebble runs one on free ports, and returns when it answers. dir is an empty directory.
func StartPebble(ctx context.Context, dir string, o PebbleOptions) (*Pebble, error) {
	p := &Pebble{counts: map[string]int{}}
	var err error
	if p.Authority, err = NewAuthority("directory"); err != nil {
		return nil, err
	}
	p.own = p.Authority
	pair, err := p.own.Issue(CertificateOptions{Names: []string{"127.0.0.1"}})
	if err != nil {
		return nil, err
	}
	ports := make([]string, 4)
	for i := range ports {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		ports[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	if o.Validity == 0 {
		o.Validity = 90 * 24 * 3600
	}
	profiles := map[string]any{"default": map[string]any{"description": "all", "validityPeriod": o.Validity}}
	for name, validity := range o.Profiles {
		profiles[name] = map[string]any{"description": name, "validityPeriod": validity}
	}
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": ports[0], "managementListenAddress": ports[1],
		"certificate": filepath.Join(dir, "cert.pem"), "privateKey": filepath.Join(dir, "key.pem"),
		"httpPort": o.HTTPPort, "tlsPort": 1, "keyAlgorithm": "ecdsa",
		"externalAccountBindingRequired": o.ExternalAccounts != nil, "externalAccountMACKeys": o.ExternalAccounts,
		"domainBlocklist": []string{"blocked.test"}, "retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles": profiles,
	}})
	if err != nil {
		return nil, fmt.Errorf("writing the settings of Pebble: %w", err)
	}
	for name, content := range map[string]string{"cert.pem": pair.Cert, "key.pem": pair.Key, "pebble.json": string(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	home, err := Binary("pebble")
	if err != nil {
		return nil, err
	}
	p.Resolver, p.DNSManagement = ports[2], "http://"+ports[3]
	p.dns, err = startProcess(filepath.Join(home, "pebble-challtestsrv"), nil, "-dnsserver", ports[2], "-management", ports[3],
		"-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv6", "")
	if err != nil {
		return nil, err
	}
	p.start = func() (*Process, error) {
		return startProcess(filepath.Join(home, "pebble"), append([]string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0", "PEBBLE_AUTHZREUSE=0"}, o.Env...),
			"-config", filepath.Join(dir, "pebble.json"), "-dnsserver", ports[2])
	}
	p.management, p.inside = "https://"+ports[1], ports[0]
	if err := p.run(ctx, "127.0.0.1:0"); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Restart runs it anew at the same address. It knows nothing of before, and signs with new roots; another Authority has
// signed the certificate of its directory.
func (p *Pebble) Restart(ctx context.Context) error {
	if err := errors.Join(p.front.Close(), p.Kill()); err != nil {
		return err
	}
	var err error
	if p.Authority, err = NewAuthority("another directory"); err != nil {
		return err
	}
	return p.run(ctx, strings.TrimSuffix(strings.TrimPrefix(p.Directory, "https://"), "/dir"))
}

func (p *Pebble) run(ctx context.Context, address string) error {
	var err error
	if p.Process, err = p.start(); err != nil {
		return err
	}
	if err := p.serve(ctx, address); err != nil {
		return err
	}
	return p.await(ctx, "Pebble answers", func() error {
		_, err := p.Get(ctx, p.Directory)
		return err
	})
}

// serve runs the proxy. Pebble makes the URLs in its answers from the Host of a request, so all lead to the proxy.
func (p *Pebble) serve(ctx context.Context, address string) error {
	pair, err := p.Authority.Issue(CertificateOptions{Names: []string{"127.0.0.1"}})
	if err != nil {
		return err
	}
	cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
	if err != nil {
		return fmt.Errorf("reading the certificate of Pebble: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening for clients of Pebble: %w", err)
	}
	p.Directory = "https://" + listener.Addr().String() + "/dir"
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.own.Pool(), MinVersion: tls.VersionTLS12}}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "https", Host: p.inside})
		r.Out.Host = r.In.Host
	}}
	p.front = &http.Server{ReadHeaderTimeout: Patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.counts[r.URL.Path]++
		answer := p.answer
		p.mu.Unlock()
		if answer == nil || !answer(w, r) {
			proxy.ServeHTTP(w, r)
		}
	})}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	go func() { _ = p.front.Serve(tls.NewListener(listener, config)) }() // until Close
	return nil
}

// Count returns how many requests were made for paths that begin so.
func (p *Pebble) Count(prefix string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, count := range p.counts {
		if strings.HasPrefix(path, prefix) {
			n += count
		}
	}
	return n
}

// Answer sets what answers requests in place of Pebble; false passes one on, and nil all of them.
func (p *Pebble) Answer(answer func(w http.ResponseWriter, r *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// Problem answers with a problem of ACME.
func (p *Pebble) Problem(w http.ResponseWriter, status int, kind, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may be gone
		"type": "urn:ietf:params:acme:error:" + kind, "detail": detail, "status": status,
	})
}

// Root returns the certificate of the authority that signs the certificates.
func (p *Pebble) Root(ctx context.Context) (*Authority, error) { return p.AlternateRoot(ctx, 0) }

// AlternateRoot returns that of another chain, from 1, if PEBBLE_ALTERNATE_ROOTS says that there are some.
func (p *Pebble) AlternateRoot(ctx context.Context, n int) (*Authority, error) {
	text, err := p.Get(ctx, fmt.Sprintf("%s/roots/%d", p.management, n))
	if err != nil {
		return nil, err
	}
	return ReadAuthority(text)
}

// Get reads a URL of Pebble.
func (p *Pebble) Get(ctx context.Context, at string) (string, error) {
	return p.send(ctx, http.MethodGet, at, "")
}

// SetRenewalInfo sets what Pebble says about when to renew a certificate.
func (p *Pebble) SetRenewalInfo(ctx context.Context, certificate, answer string) error {
	body, err := json.Marshal(map[string]string{"certificate": certificate, "ariResponse": answer})
	if err != nil {
		return fmt.Errorf("writing renewal information: %w", err)
	}
	_, err = p.send(ctx, http.MethodPost, p.management+"/set-renewal-info/", string(body))
	return err
}

func (p *Pebble) send(ctx context.Context, method, at, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("asking Pebble: %w", err)
	}
	pool := p.own.Pool()
	pool.AppendCertsFromPEM([]byte(p.Authority.PEM))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport, Timeout: Patience}).Do(req)
	if err != nil {
		return "", fmt.Errorf("asking Pebble: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("asking Pebble: %d: %s", res.StatusCode, text)
	}
	return string(text), err
}

// Close ends it.
func (p *Pebble) Close() error {
	var err error
	if p.front != nil {
		err = p.front.Close()
	}
	if p.Process != nil {
		err = errors.Join(err, p.Kill())
	}
	return errors.Join(err, p.dns.Kill())
}
