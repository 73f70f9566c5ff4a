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
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// OIDCProvider is a running identity provider: npm's oidc-provider, with the pages
// of hack/oidc-provider. Browser.LogIn fills them in.
type OIDCProvider struct {
	*Process
	// Issuer is https://localhost:PORT.
	Issuer string
	Port   int
	// Authority signed its certificate.
	Authority *Authority
}

// OIDCSettings are the settings of a provider that can be changed while it runs. A zero
// field changes nothing.
type OIDCSettings struct {
	Clients []OIDCClient        `json:"clients,omitempty"`
	Users   map[string]OIDCUser `json:"users,omitempty"`
	// Consent says that a client requests the user's consent once.
	Consent *bool `json:"consent,omitempty"`
	// TTL is how long an AccessToken, IdToken or RefreshToken is valid, in seconds; by
	// default an hour, an hour and a day.
	TTL map[string]int `json:"ttl,omitempty"`
	// RotateRefreshTokens says that each can be used once.
	RotateRefreshTokens *bool `json:"rotate_refresh_tokens,omitempty"`
	// Faults are special answers, by path.
	Faults map[string]OIDCFault `json:"faults,omitempty"`
	// Keys is "rotate" (a new key signs, the old ones stay published) or "replace".
	Keys string `json:"keys,omitempty"`
}

// OIDCClient is a client that may start logins.
type OIDCClient struct {
	ID                     string   `json:"client_id"`
	Secret                 string   `json:"client_secret"`
	RedirectURIs           []string `json:"redirect_uris"`
	PostLogoutRedirectURIs []string `json:"post_logout_redirect_uris,omitempty"`
	// GrantTypes are authorization_code and refresh_token; the default is the first
	// alone.
	GrantTypes []string `json:"grant_types,omitempty"`
	// Algorithm signs its id_tokens: RS256, the default, or ES256.
	Algorithm string `json:"id_token_signed_response_alg,omitempty"`
}

// OIDCUser is a user who can log in. Claims are in the id_token.
type OIDCUser struct {
	Password string         `json:"password"`
	Claims   map[string]any `json:"claims,omitempty"`
}

// OIDCFault is an answer that is delayed or, with a Status, replaces the usual one.
type OIDCFault struct {
	Status            int    `json:"status,omitempty"`
	Body              string `json:"body,omitempty"`
	DelayMilliseconds int    `json:"delay,omitempty"`
}

// OIDCRequest is a request that a provider has answered. Scheme is that of its
// Authorization, such as Basic.
type OIDCRequest struct{ Method, Path, Query, Scheme string }

// StartOIDCProvider runs one on a free port and returns when it answers. dir is an
// empty directory.
func StartOIDCProvider(ctx context.Context, dir string, authority *Authority, s OIDCSettings) (*OIDCProvider, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	p := &OIDCProvider{Issuer: "https://localhost:" + strconv.Itoa(port), Port: port, Authority: authority}
	if err := p.configure(dir, s); err != nil {
		return nil, err
	}
	return p, p.Restart(ctx, dir)
}

// Restart runs it again on its port once it has stopped, with new keys and no sessions.
func (p *OIDCProvider) Restart(ctx context.Context, dir string) error {
	node, err := Binary("oidc-provider/node")
	if err != nil {
		return err
	}
	server, err := Binary("oidc-provider/server.js")
	if err != nil {
		return err
	}
	if p.Process, err = startProcess(node, nil, server, filepath.Join(dir, "config.json")); err != nil {
		return err
	}
	if err := p.await(ctx, "the identity provider answers",
		func() error { _, err := p.Requests(ctx); return err }); err != nil {
		return errors.Join(err, p.Kill())
	}
	return nil
}

func (p *OIDCProvider) configure(dir string, s OIDCSettings) error {
	pair, err := p.Authority.Issue(CertificateOptions{Names: []string{"localhost", "127.0.0.1"}})
	if err != nil {
		return err
	}
	settings, err := json.Marshal(s)
	if err != nil {
		return err
	}
	config := map[string]any{}
	if err := json.Unmarshal(settings, &config); err != nil {
		return err
	}
	config["issuer"], config["address"], config["port"] = p.Issuer, "127.0.0.1", p.Port
	config["cert"], config["key"] = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	for name, content := range map[string]string{"cert.pem": pair.Cert, "key.pem": pair.Key, "config.json": string(text)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Change replaces the settings that are not zero. Sessions stay.
func (p *OIDCProvider) Change(ctx context.Context, s OIDCSettings) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = p.control(ctx, http.MethodPut, string(text))
	return err
}

// Requests returns the requests that it has answered or is about to answer, oldest
// first.
func (p *OIDCProvider) Requests(ctx context.Context) ([]OIDCRequest, error) {
	text, err := p.control(ctx, http.MethodGet, "")
	if err != nil {
		return nil, err
	}
	var list []OIDCRequest
	return list, json.Unmarshal(text, &list)
}

func (p *OIDCProvider) control(ctx context.Context, method, body string) ([]byte, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port))
	req, err := http.NewRequestWithContext(ctx, method, "https://"+address+"/control", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: p.Authority.Pool(), MinVersion: tls.VersionTLS12},
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s /control of the identity provider: status %d: %s", method, resp.StatusCode, text)
	}
	return text, nil
}
