package testkit

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Glewlwyd is a running identity provider, another implementation than OIDCProvider.
// Its login page is a script, so use Glewlwyd.LogIn instead of Browser.LogIn. It
// requires a nonce from every client.
type Glewlwyd struct {
	*Process
	// Issuer is https://localhost:PORT/api/oidc.
	Issuer string
	Port   int
	// Authority signed its certificate.
	Authority *Authority
}

// GlewlwydUser is a user who can log in. Groups are a claim of the id_token.
type GlewlwydUser struct {
	Name, Password, Email string
	Groups                []string
}

// StartGlewlwyd runs one on a free port with clients and users, and returns when it
// answers. A client has at most one URI for redirects after a sign-out. dir is an empty
// directory.
func StartGlewlwyd(
	ctx context.Context, dir string, authority *Authority, clients []OIDCClient, users []GlewlwydUser,
) (*Glewlwyd, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	g := &Glewlwyd{Port: port, Authority: authority}
	g.Issuer = g.base() + "/api/oidc"
	home, err := Binary("glewlwyd")
	if err != nil {
		return nil, err
	}
	if err := g.configure(dir, home); err != nil {
		return nil, err
	}
	libraries, err := filepath.Glob(filepath.Join(home, "usr/lib/*-linux-gnu"))
	if err != nil || len(libraries) != 1 {
		return nil, fmt.Errorf("looking for the libraries of Glewlwyd in %s: %d directories: %w", home, len(libraries), err)
	}
	g.Process, err = startProcess(filepath.Join(home, "usr/bin/glewlwyd"), []string{"LD_LIBRARY_PATH=" + libraries[0]},
		"--config-file="+filepath.Join(dir, "glewlwyd.conf"))
	if err != nil {
		return nil, err
	}
	admin := NewBrowser(authority)
	defer admin.Close()
	err = g.await(ctx, "Glewlwyd answers", func() error {
		return g.call(ctx, admin, http.MethodPost, "/api/auth/", map[string]any{"username": "admin", "password": "password"})
	})
	if err == nil {
		err = g.setUp(ctx, admin, clients, users)
	}
	if err != nil {
		return nil, errors.Join(err, g.Kill())
	}
	return g, nil
}

func (g *Glewlwyd) base() string { return "https://localhost:" + strconv.Itoa(g.Port) }

func (g *Glewlwyd) configure(dir, home string) error {
	pair, err := g.Authority.Issue(CertificateOptions{Names: []string{"localhost"}})
	if err != nil {
		return err
	}
	empty, err := os.ReadFile(filepath.Join(home, "empty.db"))
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`port=%d
bind_address="127.0.0.1"
external_url="%s"
login_url="login.html"
api_prefix="api"
static_files_path="%[3]s"
log_mode="console"
log_level="WARNING"
cookie_secure=1
session_expiration=86400
session_key="GLEWLWYD2_SESSION_ID"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="%[4]s/user"
user_middleware_module_path="%[3]s"
client_module_path="%[4]s/client"
user_auth_scheme_module_path="%[4]s/scheme"
plugin_module_path="%[4]s/plugin"
use_secure_connection=true
secure_connection_key_file="%[3]s/key.pem"
secure_connection_pem_file="%[3]s/cert.pem"
hash_algorithm="SHA512"
database = { type = "sqlite3" path = "%[3]s/db" };
`, g.Port, g.base(), dir, filepath.Join(home, "usr/lib/glewlwyd"))
	for name, content := range map[string]string{"cert.pem": pair.Cert, "key.pem": pair.Key, "glewlwyd.conf": config, "db": string(empty)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// parameters returns the settings of the provider, with every field that its API
// requires.
func (g *Glewlwyd) parameters() (map[string]any, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"iss": g.Issuer, "jwt-type": "rsa", "jwt-key-size": "256",
		"key": toPEM("PRIVATE KEY", private), "cert": toPEM("PUBLIC KEY", public), "jwks-show": true,
		"access-token-duration": 3600, "refresh-token-duration": 86400, "code-duration": 600, "refresh-token-rolling": false,
		"auth-type-code-enabled": true, "auth-type-refresh-enabled": true, "allow-non-oidc": false,
		"auth-type-token-enabled": false, "auth-type-none-enabled": false, "auth-type-password-enabled": false,
		"auth-type-client-enabled": false, "auth-type-device-enabled": false,
		"subject-type": "public", "allowed-scope": []string{"openid"}, "scope": []any{},
		"pkce-allowed": true, "pkce-method-plain-allowed": false,
		"name-claim": "mandatory", "email-claim": "mandatory", "scope-claim": "no",
		"claims": []any{map[string]any{
			"name": "groups", "user-property": "groups", "type": "string", "mandatory": true, "on-demand": false,
			"scope": []any{},
		}},
		"introspection-revocation-allowed": false, "register-client-allowed": false,
		"session-management-allowed": true, "session-cookie-name": "GLEWLWYD2_OIDC_SESSION",
		"session-cookie-expiration": 86400, "front-channel-logout-allowed": false, "back-channel-logout-allowed": false,
	}, nil
}

// setUp creates the provider, its users and its clients.
func (g *Glewlwyd) setUp(ctx context.Context, admin *Browser, clients []OIDCClient, users []GlewlwydUser) error {
	parameters, err := g.parameters()
	if err != nil {
		return err
	}
	several := map[string]any{"multiple": true, "read": true, "write": true, "profile-read": true, "profile-write": false}
	calls := []glewlwydCall{
		{
			http.MethodPost, "/api/mod/plugin/",
			map[string]any{"module": "oidc", "name": "oidc", "display_name": "oidc", "parameters": parameters},
		},
		{http.MethodPut, "/api/mod/user/database", map[string]any{
			"module": "database", "name": "database", "display_name": "database", "order_rank": 0, "readonly": false,
			"parameters": map[string]any{"use-glewlwyd-connection": true, "data-format": map[string]any{"groups": several}},
		}},
		{http.MethodPut, "/api/mod/user/database/reset", nil},
	}
	for _, u := range users {
		calls = append(calls, glewlwydCall{http.MethodPost, "/api/user/", map[string]any{
			"username": u.Name, "name": u.Name, "password": u.Password, "email": u.Email, "groups": u.Groups, "enabled": true,
			"scope": []string{"openid"},
		}})
	}
	for _, c := range clients {
		client := map[string]any{
			"client_id": c.ID, "name": c.ID, "client_secret": c.Secret, "enabled": true, "confidential": true,
			"redirect_uri": c.RedirectURIs, "authorization_type": []string{"code", "refresh_token"}, "scope": []string{"openid"},
			"token_endpoint_auth_method": []string{"client_secret_post", "client_secret_basic"},
		}
		if len(c.PostLogoutRedirectURIs) > 0 {
			client["post_logout_redirect_uri"] = c.PostLogoutRedirectURIs[0]
		}
		calls = append(calls, glewlwydCall{http.MethodPost, "/api/client/", client})
	}
	for _, c := range calls {
		if err := g.call(ctx, admin, c.method, c.path, c.body); err != nil {
			return err
		}
	}
	return nil
}

// glewlwydCall is one call of its API.
type glewlwydCall struct {
	method, path string
	body         map[string]any
}

// LogIn does what the script of the login page does, and follows the redirects back to
// the client.
func (g *Glewlwyd) LogIn(ctx context.Context, b *Browser, page Visit, name, password string) (Visit, error) {
	q := page.URL.Query()
	if err := g.call(ctx, b, http.MethodPost, "/api/auth/",
		map[string]any{"username": name, "password": password}); err != nil {
		return page, err
	}
	if err := g.call(ctx, b, http.MethodPut, "/api/auth/grant/"+q.Get("client_id"),
		map[string]any{"scope": q.Get("scope")}); err != nil {
		return page, err
	}
	return b.Follow(ctx, Request{URL: q.Get("callback_url") + "&g_continue", Initiator: page.URL.Hostname()})
}

func (g *Glewlwyd) call(ctx context.Context, b *Browser, method, path string, body map[string]any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	u, err := url.Parse(g.base() + path)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	v, err := b.send(req, Request{Method: method, URL: u.String(), Initiator: u.Hostname()})
	if err == nil && v.Status != http.StatusOK {
		err = fmt.Errorf("%s %s of Glewlwyd: status %d: %s", method, path, v.Status, v.Body)
	}
	return err
}
