package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultTimeout is how long a call may take.
const DefaultTimeout = time.Minute

// maxProblem bounds what is read of an error answer, in bytes.
const maxProblem = 4 << 20

// Options say whom to call and how.
type Options struct {
	// Server is http://HOST:PORT or https://HOST:PORT; a path may follow.
	Server string
	// Token is the bearer token; empty means none.
	Token string
	// Authorities sign the certificate of an https server. Nil means those of
	// the system.
	Authorities *x509.CertPool
	// Timeout bounds a call, and for a streamed answer the time to its
	// beginning and each pause in it. Zero means DefaultTimeout.
	Timeout time.Duration
	// UserAgent is what the server sees in its log. Empty means gatehouse.
	UserAgent string
	// Message says in one line why writes are made; empty means nothing. It is a parameter of calls
	// that change the configuration.
	Message string
	// Warn is called for each warning of an answer (Gatehouse-Warning), with the
	// server's text; may be nil.
	Warn func(text string)
}

// Client makes calls of the REST API. It is for many goroutines.
type Client struct {
	base    *url.URL
	options Options
	http    *http.Client
}

// New returns a client and makes no call. The error is about Options.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.Server)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil ||
		base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("the server %q is not an address such as http://127.0.0.1:1323", o.Server)
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token has characters that a token cannot have: it must be one word on one line")
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.UserAgent == "" {
		o.UserAgent = "gatehouse"
	}
	return &Client{
		base: base, options: o,
		http: &http.Client{
			// A redirect could lead to a server that is not to see the token.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     transport(o.Authorities),
		},
	}, nil
}

func transport(authorities *x509.CertPool) http.RoundTripper {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		t = standard.Clone()
	}
	if authorities != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	}
	return t
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Server is the address that is called.
func (c *Client) Server() string { return c.base.String() }

// HasToken says whether calls carry a token.
func (c *Client) HasToken() bool { return c.options.Token != "" }

// Request is one call.
type Request struct {
	Method string
	// Path is made by Path.
	Path  string
	Query url.Values
	// ContentType and Body may be empty.
	ContentType string
	Body        []byte
	// Accept is application/json when empty.
	Accept string
	// Header is sent too; nil means none.
	Header http.Header
}

// Answer is an answer of success, read in full.
type Answer struct {
	Status int
	// Revision is the configuration revision that holds a write; 0 for none.
	Revision int64
	// ETag names the state of the object that was read; may be empty.
	ETag string
	// Data is what the answer has under "data"; nil when it has no such key.
	Data json.RawMessage
	// Body is all of it.
	Body json.RawMessage

	next string
}

// Path joins the segments of a path and escapes each.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// Do makes a call whose answer is JSON. The error is an *Error when the server
// answered with one.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	resp, err := c.send(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, c.unreachableError(r, err)
	}
	a := Answer{Status: resp.StatusCode, Body: body, ETag: resp.Header.Get("ETag"), next: nextPage(resp.Header)}
	a.Revision, _ = strconv.ParseInt(resp.Header.Get("Gatehouse-Revision"), 10, 64)
	var envelope struct{ Data json.RawMessage }
	if !json.Valid(body) {
		return Answer{}, fmt.Errorf("%s %s: the answer is not JSON; is %s a Gatehouse?", r.Method, r.Path, c.base)
	}
	if json.Unmarshal(body, &envelope) == nil { // a list has no data
		a.Data = envelope.Data
	}
	return a, nil
}

// Stream makes a call and returns its answer as it arrives. The caller closes
// it. A pause longer than the timeout ends it with an error.
func (c *Client) Stream(ctx context.Context, r Request) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.options.Timeout, func() { cancel(context.DeadlineExceeded) })
	resp, err := c.send(ctx, r)
	if err != nil {
		timer.Stop()
		cancel(nil)
		return nil, err
	}
	return &stream{ctx, resp.Body, c, r, timer, cancel}, nil
}

type stream struct {
	ctx    context.Context //nolint:containedctx // holds why the body ended
	body   io.ReadCloser
	client *Client
	req    Request
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if n > 0 {
		s.timer.Reset(s.client.options.Timeout)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(s.ctx); cause != nil {
			err = cause
		}
		err = s.client.unreachableError(s.req, err)
	}
	return n, err
}

func (s *stream) Close() error {
	s.timer.Stop()
	s.cancel(nil)
	return s.body.Close()
}

// send returns an answer of success, whose body the caller closes.
func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	target := strings.TrimSuffix(c.base.String(), "/") + r.Path
	if c.options.Message != "" && r.Method != http.MethodGet {
		r.Query = maps.Clone(r.Query)
		if r.Query == nil {
			r.Query = url.Values{}
		}
		r.Query.Set("message", c.options.Message)
	}
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", target, err)
	}
	if r.ContentType != "" {
		req.Header.Set("Content-Type", r.ContentType)
	}
	req.Header.Set("Accept", "application/json")
	if r.Accept != "" {
		req.Header.Set("Accept", r.Accept)
	}
	maps.Copy(req.Header, r.Header)
	req.Header.Set("User-Agent", c.options.UserAgent)
	if c.options.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.options.Token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, c.unreachableError(r, err)
	}
	if resp.StatusCode/100 == 2 {
		for _, text := range resp.Header.Values("Gatehouse-Warning") {
			if c.options.Warn != nil {
				c.options.Warn(text)
			}
		}
		return resp, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err != nil {
		return nil, c.unreachableError(r, err)
	}
	return nil, readProblem(r, resp, body, c.options.Token != "")
}

// unreachableError says what to do if there is no answer.
func (c *Client) unreachableError(r Request, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s %s: %s has not answered within %s; try again, or increase --timeout: %w",
			r.Method, r.Path, c.base, c.options.Timeout, err)
	}
	if _, untrusted := errors.AsType[x509.UnknownAuthorityError](err); untrusted {
		return fmt.Errorf("calling %s: %w; name the certificate authority of the server with --ca-file, %s or a context",
			c.base, err, CAFileVariable)
	}
	return fmt.Errorf("calling %s: %w; is gatehouse serve running there? To call another server, use --server, "+
		"GATEHOUSE_SERVER or gatehouse context use", c.base, err)
}

// nextPage returns the query of the link to the next page, or "".
func nextPage(h http.Header) string {
	for _, value := range h.Values("Link") {
		for link := range strings.SplitSeq(value, ",") {
			target, params, ok := strings.Cut(strings.TrimSpace(link), ">")
			if !ok || !strings.HasPrefix(target, "<") || !strings.Contains(params, `rel="next"`) {
				continue
			}
			if u, err := url.Parse(target[1:]); err == nil {
				return u.RawQuery
			}
		}
	}
	return ""
}
