package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// timeout bounds a request with its answer.
	timeout = 5 * time.Second
	// The bounds of what is read, in bytes.
	documentBytes, keysBytes, headerBytes = 256 << 10, 512 << 10, 32 << 10
)

// Options of a Client.
type Options struct {
	Rules Rules
	// Authorities verify certificates unless an upstream has its own, in PEM; empty
	// means that there are none.
	Authorities string
	// Resolver resolves host names; nil means the system's resolver.
	Resolver *net.Resolver
	// Open opens the keys of client certificates; if it is nil, no client certificate
	// can be used.
	Open func(sealed, place string) (string, error)
	// Timeout bounds a request with its answer; 0 means 5 s.
	Timeout time.Duration
}

// Client sends requests to providers. It is safe for concurrent use, and keeps no
// connection open.
type Client struct {
	opts Options
	// authorities returns nil if there are none. They are parsed for the first call, because most installations make
	// none.
	authorities func() *x509.CertPool
}

// Via is the upstream through which a provider is reached, with the secrets that it
// names, by their names.
type Via struct {
	Upstream *model.Upstream
	Secrets  map[string]*model.Secret
	// Derived says that no user has created the upstream: its address must not be
	// special.
	Derived bool
}

// Answer is what a provider publishes about itself.
type Answer struct {
	model.Provider
	// MaxAge is how long the provider says that it is valid; 0 means that it does not
	// say.
	MaxAge time.Duration
	// PostsSecret says that the token endpoint takes a client's secret in the form only, not in Authorization.
	PostsSecret bool
	// NamesItself says that what the provider tells a client through the browser has the parameter iss (RFC 9207).
	NamesItself bool
}

// NewClient returns a client.
func NewClient(opts Options) *Client {
	if opts.Timeout == 0 {
		opts.Timeout = timeout
	}
	return &Client{opts: opts, authorities: sync.OnceValue(func() *x509.CertPool {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(opts.Authorities)) {
			return nil
		}
		return pool
	})}
}

// Ask requests the document and keys of a provider. via is the upstream that the source
// names; nil means that it names none, or one that does not exist. An error is a
// sentence that says what to do.
func (c *Client) Ask(ctx context.Context, source model.ProviderSource, via *Via) (Answer, error) {
	a := Answer{Provider: model.Provider{JWKSURI: source.JWKSURI}}
	if source.Upstream != "" && via == nil {
		return a, fmt.Errorf("the upstream %q does not exist", source.Upstream)
	}
	var age time.Duration
	if source.Discover {
		var err error
		if a, err = c.discover(ctx, source, via); err != nil {
			return a, err
		}
		age = a.MaxAge
	}
	text, keysAge, err := c.get(ctx, a.JWKSURI, keysBytes, via.at(source, a.JWKSURI))
	if err == nil {
		_, err = readObject(text)
	}
	if err == nil {
		a.JWKS, err = model.ReadKeys(text)
	}
	if err != nil {
		return a, fmt.Errorf("the key set %s %w", a.JWKSURI, err)
	}
	a.Source, a.MaxAge = source, keysAge
	if age > 0 && (keysAge == 0 || age < keysAge) {
		a.MaxAge = age
	}
	return a, nil
}

// discover reads the discovery document.
func (c *Client) discover(ctx context.Context, source model.ProviderSource, via *Via) (a Answer, err error) {
	at, err := documentURL(source.Issuer)
	if err != nil {
		return a, err
	}
	text, age, err := c.get(ctx, at, documentBytes, via.at(source, at))
	if err == nil {
		a, err = readDocument(text, source.Issuer)
	}
	if err == nil && via == nil && a.TokenEndpoint != "" {
		// Envoy sends the client's secret there.
		u, parseErr := url.Parse(a.TokenEndpoint)
		if err = parseErr; err == nil {
			if err = c.opts.Rules.checkEndpoint(u); err != nil {
				err = fmt.Errorf("has the token_endpoint %s, which %w", a.TokenEndpoint, err)
			}
		}
	}
	if err != nil {
		return a, fmt.Errorf("the discovery document %s %w", at, err)
	}
	if source.JWKSURI != "" {
		a.JWKSURI = source.JWKSURI
	}
	if a.JWKSURI == "" {
		return a, fmt.Errorf("the discovery document %s has no jwks_uri: give jwks_uri in the configuration", at)
	}
	a.MaxAge = age
	return a, nil
}

// at returns the upstream for a URL: nil if the URL is not at the host of the upstream.
func (v *Via) at(source model.ProviderSource, u string) *Via {
	if v == nil || !sameHost(source.UpstreamFor, u) {
		return nil
	}
	return v
}

// sameHost reports whether two URLs have the same host and port.
func sameHost(a, b string) bool {
	x, err1 := url.Parse(a)
	y, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && strings.EqualFold(x.Hostname(), y.Hostname()) && portOf(x) == portOf(y)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// get reads a URL, and how long the answer says that it is valid.
func (c *Client) get(ctx context.Context, at string, limit int64, via *Via) ([]byte, time.Duration, error) {
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, 0, fmt.Errorf("is not an absolute URL of https: correct the configuration of the login")
	}
	transport, err := c.transport(u, via)
	if err != nil {
		return nil, 0, err
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot be fetched: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "gatehouse")
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res, err := client.Do(req)
	if err != nil {
		return nil, 0, c.explain(err, u, via)
	}
	defer res.Body.Close()
	if err := refuseAnswer(res); err != nil {
		return nil, 0, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		return nil, 0, fmt.Errorf("is larger than %d KiB: the URL may be wrong", limit>>10)
	}
	if err == nil {
		err = ctx.Err() // a broken connection can look like the end of the body
	}
	if err != nil {
		return nil, 0, c.explain(err, u, via)
	}
	return body, maxAge(res.Header), nil
}

// refuseAnswer says why an answer cannot be the requested document.
func refuseAnswer(res *http.Response) error {
	switch code := res.StatusCode; {
	case code >= 300 && code < 400 && res.Header.Get("Location") != "":
		return fmt.Errorf("redirects to %s, which is not followed: write the URL to which it redirects",
			quote(res.Header.Get("Location")))
	case code == http.StatusNotFound:
		return fmt.Errorf("does not exist (404): correct the URL; an issuer is written without %s", wellKnown)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("is not public (%d): the provider has to let everybody read it", code)
	case code != http.StatusOK:
		return fmt.Errorf("is answered with %d: check the provider", code)
	}
	if e := res.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return fmt.Errorf("is compressed (%s), although no compression was requested: turn it off at the provider", quote(e))
	}
	return nil
}

// maxAge reads Cache-Control (RFC 9111 section 5.2.2.1).
func maxAge(h http.Header) time.Duration {
	for part := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(name, "max-age") {
			n, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
			if err != nil {
				return 0
			}
			return time.Duration(n) * time.Second
		}
	}
	return 0
}

// transport returns the transport for one request to a host, or to the upstream in its
// place.
func (c *Client) transport(u *url.URL, via *Via) (*http.Transport, error) {
	host, target := u.Hostname(), ""
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.authorities()}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	if via != nil {
		up := via.Upstream
		host, target = up.IP, net.JoinHostPort(up.IP, strconv.Itoa(up.Port))
		u.Scheme = "http"
		if up.SpeaksTLS() {
			u.Scheme = "https"
		}
		switch up.Protocol {
		case "h2":
			protocols = new(http.Protocols)
			protocols.SetHTTP2(true)
		case "h2c":
			protocols = new(http.Protocols)
			protocols.SetUnencryptedHTTP2(true)
		}
		var err error
		if config, err = c.upstreamTLS(via); err != nil {
			return nil, err
		}
	} else if u.Scheme == "https" && c.authorities() == nil {
		return nil, fmt.Errorf("cannot be verified, because no certificate authorities were found on the system: " +
			"start with --upstream-ca-file")
	}
	if err := c.opts.Rules.checkHost(host); err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Resolver: c.opts.Resolver, Control: c.opts.Rules.control(host, via != nil && !via.Derived)}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if target != "" {
				address = target
			}
			return dialer.DialContext(ctx, network, address)
		},
		TLSClientConfig: config, Protocols: protocols, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: headerBytes,
	}, nil
}

// upstreamTLS returns the TLS settings that Envoy uses with an upstream (ADR 0053).
func (c *Client) upstreamTLS(via *Via) (*tls.Config, error) {
	up := via.Upstream
	name := up.ValidationSubjectName
	if name == "" {
		name = up.IP
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.Unmap().String()
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: strings.TrimSuffix(name, "."), RootCAs: c.authorities(),
		InsecureSkipVerify: up.IsUnverified(), //nolint:gosec // somebody has said so of the upstream
	}
	if !up.SpeaksTLS() {
		return config, nil
	}
	if ca := up.ValidationCACertificate; ca != "" {
		config.RootCAs = x509.NewCertPool()
		if s := via.Secrets[ca]; s == nil || !config.RootCAs.AppendCertsFromPEM([]byte(s.Cert)) {
			return nil, fmt.Errorf("cannot be verified: the secret %q, which upstream %q names, has no certificate authority",
				ca, up.Name)
		}
	} else if c.authorities() == nil && !up.TLSInsecure {
		return nil, fmt.Errorf("cannot be verified, because no certificate authorities were found on the system: "+
			"start with --upstream-ca-file, or name a secret in Upstream_validation_cacertificate of upstream %q", up.Name)
	}
	if up.ClientCertificate == "" {
		return config, nil
	}
	pair, err := c.clientPair(via.Secrets[up.ClientCertificate])
	if err != nil {
		return nil, fmt.Errorf("cannot be fetched: the client certificate %q of upstream %q cannot be used: %w",
			up.ClientCertificate, up.Name, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

func (c *Client) clientPair(s *model.Secret) (tls.Certificate, error) {
	switch {
	case s == nil || s.Cert == "" || s.PrivateKey == "":
		return tls.Certificate{}, fmt.Errorf("the secret has no pair")
	case c.opts.Open == nil:
		return tls.Certificate{}, fmt.Errorf("nothing opens its key")
	}
	text, err := s.OpenKey(c.opts.Open)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair([]byte(s.Cert), []byte(text))
}
