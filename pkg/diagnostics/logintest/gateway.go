package logintest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answerTime bounds a request to the gateway.
const answerTime = 5 * time.Second

// askGateway sends requests without a session through the Envoy of this process.
func (r *run) askGateway(ctx context.Context) {
	if r.Own != r.proxy {
		r.request = r.ownRequest()
		curl := "try it where one is: curl -sSi " + r.target.String() + " answers 302"
		r.unclear("gateway", curl, "no Envoy of proxy %q runs in this process", r.proxy)
		return
	}
	res, err := r.get(ctx, nil)
	if err != nil {
		r.unclear("gateway", "see gatehouse status", "%s", err)
		r.request = r.ownRequest()
		return
	}
	to, _ := res.Location()
	switch {
	case res.StatusCode == http.StatusServiceUnavailable:
		r.fail("gateway", "see gatehouse get service "+r.service+"; it may still be on its way",
			"it answers 503 to a request without a session")
	case res.StatusCode != http.StatusFound || to == nil:
		r.fail("gateway", "this is right for a public route; otherwise see gatehouse explain "+r.proxy+" "+r.target.String(),
			"it answers %d to a request without a session, and should redirect to the identity provider", res.StatusCode)
	default:
		if wrong := r.wrongRequest(to, res.Cookies()); wrong != "" {
			r.fail("gateway", "see gatehouse explain "+r.proxy+" "+r.target.String(),
				"it redirects a request without a session, but %s", wrong)
			break
		}
		r.request = to
		r.ok("gateway", "it sends a request without a session to %s, with PKCE (S256), state and scopes %s",
			r.compiled.AuthorizationEndpoint, strings.Join(r.compiled.Scopes, " "))
	}
	if r.request == nil {
		r.request = r.ownRequest()
	}
	r.askAsScript(ctx)
}

func (r *run) askAsScript(ctx context.Context) {
	res, err := r.get(ctx, http.Header{"X-Requested-With": {"XMLHttpRequest"}})
	switch {
	case err != nil:
		r.unclear("scripts", "see gatehouse status", "%s", err)
	case res.StatusCode == http.StatusUnauthorized:
		r.ok("scripts", "requests of scripts and API clients without a session get 401")
	default:
		r.fail("scripts", "see gatehouse explain "+r.proxy+" "+r.target.String(),
			"a request of a script without a session gets %d in place of 401", res.StatusCode)
	}
}

// get requests the target from the Envoy of this process.
func (r *run) get(ctx context.Context, header http.Header) (*http.Response, error) {
	proxy := r.config.Proxy(r.proxy).Proxy
	ip := proxy.ListenIP
	if addr, err := netip.ParseAddr(ip); err == nil && addr.IsUnspecified() {
		ip = map[bool]string{true: "127.0.0.1", false: "::1"}[addr.Is4()]
	}
	at, plain := net.JoinHostPort(ip, strconv.Itoa(proxy.HTTPSPort)), *r.target
	if header == nil {
		header = http.Header{"Accept": {"text/html,*/*"}}
	}
	if proxy.TrustedHops > 0 && !slices.ContainsFunc(r.Steps,
		func(s Step) bool { return s.Name == "certificate" && s.Result == OK }) {
		// As the proxy in front of the gateway does.
		at, plain.Scheme = net.JoinHostPort(ip, strconv.Itoa(proxy.HTTPPort)), "http"
		header.Set("X-Forwarded-Proto", "https")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, plain.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header = header
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, at)
		},
		// The request contains no secret; checkCertificate has checked the certificate.
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, //nolint:gosec // see above
		DisableKeepAlives: true,
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return nil, errors.New("the gateway does not answer at " + at + " (" + err.Error() + ")")
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	return res, errors.Join(err, res.Body.Close())
}

// wrongRequest says what is wrong with the redirect to the provider; empty if nothing is.
func (r *run) wrongRequest(to *url.URL, cookies []*http.Cookie) string {
	want, err := url.Parse(r.compiled.AuthorizationEndpoint)
	if err != nil || to.Scheme != want.Scheme || to.Host != want.Host || to.Path != want.Path {
		to.RawQuery = ""
		return "to " + to.String() + ", not to " + r.compiled.AuthorizationEndpoint
	}
	q := to.Query()
	for _, f := range []struct{ name, want string }{
		{"client_id", r.compiled.ClientID}, {"response_type", "code"}, {"redirect_uri", r.redirectURI()},
		{"code_challenge_method", "S256"},
	} {
		if q.Get(f.name) != f.want {
			return "with the " + f.name + " " + strconv.Quote(q.Get(f.name)) + " in place of " + strconv.Quote(f.want)
		}
	}
	if q.Get("code_challenge") == "" || q.Get("state") == "" {
		return "without a code_challenge or a state"
	}
	scopes := strings.Fields(q.Get("scope"))
	for _, scope := range r.compiled.Scopes {
		if !slices.Contains(scopes, scope) {
			return "without the scope " + scope
		}
	}
	for _, c := range cookies {
		if !c.Secure || !c.HttpOnly {
			return "with the cookie " + c.Name + ", which is not Secure and HttpOnly"
		}
	}
	return ""
}

// ownRequest is the request to which an Envoy would redirect a browser.
func (r *run) ownRequest() *url.URL {
	u, err := url.Parse(r.compiled.AuthorizationEndpoint)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256([]byte(rand.Text()))
	q := u.Query()
	for name, value := range map[string]string{
		"client_id": r.compiled.ClientID, "response_type": "code", "redirect_uri": r.redirectURI(),
		"scope": strings.Join(r.compiled.Scopes, " "),
		"state": rand.Text(), "code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u
}
