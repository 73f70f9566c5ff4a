package testkit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Browser is a scripted browser: it keeps cookies as Chromium does, follows redirects
// step by step, fills in forms, and remembers every request. It runs no scripts and is
// for one goroutine.
type Browser struct {
	// Cookies are the cookies that it has. A test may change them.
	Cookies Cookies
	// Visits are all requests with their answers, oldest first.
	Visits []Visit
	// Connect maps the HOST:PORT of a URL to the address to connect to; the default is
	// the port at 127.0.0.1.
	Connect map[string]string

	transport *http.Transport
}

// Visit is a request with its answer.
type Visit struct {
	Method string
	URL    *url.URL
	// Sent is the header of the request, with its cookies; Form is its body.
	Sent http.Header
	Form url.Values
	Answer
}

// Request is a request by a script or a person. The zero value of Method is GET.
type Request struct {
	Method, URL string
	Header      http.Header
	Form        url.Values
	// Initiator is the host of the page that sends it; empty for an address that a
	// person enters.
	Initiator string
}

// maxRedirects is the limit of Chromium.
const maxRedirects = 20

// ErrTooManyRedirects is the error for an endless redirect.
var ErrTooManyRedirects = errors.New("too many redirects")

// NewBrowser returns a browser that trusts only these authorities. Close closes its
// connections.
func NewBrowser(authorities ...*Authority) *Browser {
	pool := x509.NewCertPool()
	for _, a := range authorities {
		pool.AddCert(a.cert)
	}
	b := &Browser{Connect: map[string]string{}}
	b.transport = &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to, ok := b.Connect[addr]
			if !ok {
				_, port, err := net.SplitHostPort(addr)
				if err != nil {
					return nil, err
				}
				to = net.JoinHostPort("127.0.0.1", port)
			}
			return (&net.Dialer{}).DialContext(ctx, network, to)
		},
	}
	return b
}

// Close closes its connections.
func (b *Browser) Close() { b.transport.CloseIdleConnections() }

// Clone returns a browser with the same cookies and no visits, on the same connections.
func (b *Browser) Clone() *Browser {
	return &Browser{Cookies: slices.Clone(b.Cookies), Connect: maps.Clone(b.Connect), transport: b.transport}
}

// Open opens an address that a person enters, follows redirects, and returns the
// last answer.
func (b *Browser) Open(ctx context.Context, address string) (Visit, error) {
	return b.Follow(ctx, Request{URL: address})
}

// Follow sends a request, and follows its redirects.
func (b *Browser) Follow(ctx context.Context, r Request) (Visit, error) {
	for range maxRedirects {
		v, err := b.Do(ctx, r)
		if err != nil {
			return v, err
		}
		next, err := v.Location()
		if err != nil || next == nil {
			return v, err
		}
		if v.Status != http.StatusTemporaryRedirect && v.Status != http.StatusPermanentRedirect {
			r.Method, r.Form = http.MethodGet, nil
		}
		r.URL = next.String()
	}
	return b.Visits[len(b.Visits)-1], fmt.Errorf("opening %s: %w", r.URL, ErrTooManyRedirects)
}

// Do sends one request with its cookies, and stores those that the answer sets. It
// follows no redirect.
func (b *Browser) Do(ctx context.Context, r Request) (Visit, error) {
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Form.Encode()))
	if err != nil {
		return Visit{}, err
	}
	req.Header = r.Header.Clone()
	if req.Header == nil {
		req.Header = http.Header{"Accept": {"text/html,*/*"}}
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	if r.Form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return b.send(req, r)
}

// send adds the cookies to a request and sends it.
func (b *Browser) send(req *http.Request, r Request) (Visit, error) {
	if sent := b.Cookies.sent(r.Method, req.URL, r.Initiator); len(sent) > 0 && req.Header.Get("Cookie") == "" {
		req.Header.Set("Cookie", sent.header())
	}
	resp, err := b.transport.RoundTrip(req)
	if err != nil {
		return Visit{}, fmt.Errorf("%s %s: %w", r.Method, r.URL, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return Visit{}, fmt.Errorf("reading the answer to %s %s: %w", r.Method, r.URL, err)
	}
	b.Cookies = b.Cookies.store(req.URL, resp.Header)
	v := Visit{
		Method: r.Method, URL: req.URL, Sent: req.Header, Form: r.Form,
		Answer: Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body)},
	}
	b.Visits = append(b.Visits, v)
	return v, nil
}

// Location returns the target of a redirect; nil for an answer that is not a redirect.
func (v Visit) Location() (*url.URL, error) {
	location := v.Header.Get("Location")
	if v.Status < 300 || v.Status > 399 || location == "" {
		return nil, nil
	}
	next, err := v.URL.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("%s redirects to %q: %w", v.URL, location, err)
	}
	return next, nil
}

// Submit fills in the form of a page and follows redirects.
func (b *Browser) Submit(ctx context.Context, page Visit, fields map[string]string) (Visit, error) {
	f, err := page.form()
	if err != nil {
		return page, err
	}
	for name, value := range fields {
		f.values.Set(name, value)
	}
	r := Request{Method: f.method, URL: f.action.String(), Form: f.values, Initiator: page.URL.Hostname()}
	if f.method == http.MethodGet {
		f.action.RawQuery, r.Form = f.values.Encode(), nil
		r.URL = f.action.String()
	}
	return b.Follow(ctx, r)
}

// LogIn fills in the forms of an identity provider, from its first page until a page of
// another host: name and password where they are requested, and consent.
func (b *Browser) LogIn(ctx context.Context, page Visit, name, password string) (Visit, error) {
	provider := page.URL.Host
	for range 5 {
		if page.URL.Host != provider {
			return page, nil
		}
		f, err := page.form()
		if err != nil {
			return page, err
		}
		fields := map[string]string{}
		if f.password != "" {
			fields = map[string]string{f.name: name, f.password: password}
		}
		if page, err = b.Submit(ctx, page, fields); err != nil {
			return page, err
		}
		if page.Status == http.StatusUnauthorized && page.URL.Host == provider {
			return page, fmt.Errorf("logging in as %s: the provider says %s", name, page.Body)
		}
	}
	return page, fmt.Errorf("logging in as %s: the provider still asks: %s", name, page.Body)
}
