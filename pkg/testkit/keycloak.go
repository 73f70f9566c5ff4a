package testkit

import (
	"context"
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

// Keycloak is a running identity provider, a third implementation. Browser.LogIn fills
// in its pages. It takes a minute to start, so only `make test-idp` runs it.
type Keycloak struct {
	*Process
	// Issuer is https://localhost:PORT/realms/shop.
	Issuer string
	Port   int
	// Authority signed its certificate.
	Authority *Authority
}

// keycloakAdmin is the name and the password of its administrator.
const keycloakAdmin = "admin"

// StartKeycloak runs one on a free port, with clients and users, and returns when it
// answers. Users' claims that are lists of strings, with the name groups, are also in
// the id_token. dir is an empty directory.
func StartKeycloak(
	ctx context.Context, dir string, authority *Authority, clients []OIDCClient, users map[string]OIDCUser,
) (*Keycloak, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	k := &Keycloak{Port: port, Authority: authority}
	k.Issuer = k.base() + "/realms/shop"
	pair, err := authority.Issue(CertificateOptions{Names: []string{"localhost"}, RSA: true})
	if err != nil {
		return nil, err
	}
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(os.WriteFile(cert, []byte(pair.Cert), 0o600),
		os.WriteFile(key, []byte(pair.Key), 0o600)); err != nil {
		return nil, err
	}
	script, err := Binary("keycloak/bin/kc.sh")
	if err != nil {
		return nil, err
	}
	// exec in the script replaces the shell with Java.
	env := []string{
		"JAVA_OPTS_KC_HEAP=-Xms64m -Xmx512m",
		"KC_BOOTSTRAP_ADMIN_USERNAME=" + keycloakAdmin, "KC_BOOTSTRAP_ADMIN_PASSWORD=" + keycloakAdmin,
	}
	k.Process, err = startProcess(script, env, "start", "--optimized", "--https-port="+strconv.Itoa(port),
		"--hostname="+k.base(),
		"--http-host=127.0.0.1", "--cache=local", "--https-certificate-file="+cert, "--https-certificate-key-file="+key)
	if err != nil {
		return nil, err
	}
	admin := NewBrowser(authority)
	defer admin.Close()
	var token string
	err = k.await(ctx, "Keycloak answers", func() (err error) { token, err = k.token(ctx, admin); return err })
	if err == nil {
		err = k.call(ctx, admin, token, "/admin/realms", realm(clients, users))
	}
	if err != nil {
		return nil, errors.Join(err, k.Kill())
	}
	return k, nil
}

func (k *Keycloak) base() string { return "https://localhost:" + strconv.Itoa(k.Port) }

func (k *Keycloak) token(ctx context.Context, admin *Browser) (string, error) {
	v, err := admin.Do(ctx, Request{
		Method: http.MethodPost, URL: k.base() + "/realms/master/protocol/openid-connect/token",
		Form: url.Values{
			"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {keycloakAdmin}, "password": {keycloakAdmin},
		},
	})
	if err != nil {
		return "", err
	}
	var t struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(v.Body), &t); err != nil || t.Token == "" {
		return "", fmt.Errorf("logging in at Keycloak: status %d: %s", v.Status, v.Body)
	}
	return t.Token, nil
}

// realm returns Keycloak's object with the clients and users.
func realm(clients []OIDCClient, users map[string]OIDCUser) map[string]any {
	r := map[string]any{"realm": "shop", "enabled": true, "sslRequired": "none"}
	var list []any
	for _, c := range clients {
		list = append(list, map[string]any{
			"clientId": c.ID, "secret": c.Secret, "redirectUris": c.RedirectURIs, "enabled": true, "publicClient": false,
			"standardFlowEnabled": true, "protocol": "openid-connect", "fullScopeAllowed": true,
			"attributes": map[string]any{
				"post.logout.redirect.uris": strings.Join(c.PostLogoutRedirectURIs, "##"), "pkce.code.challenge.method": "S256",
			},
			"protocolMappers": []any{
				mapper("groups", "oidc-group-membership-mapper", "groups"),
				mapper("roles", "oidc-usermodel-realm-role-mapper", "realm_access.roles"),
			},
		})
	}
	r["clients"] = list
	groups, roles := map[string]bool{}, map[string]bool{}
	var people []any
	for name, u := range users {
		person := map[string]any{
			"username": name, "enabled": true, "email": name + "@shop.test", "emailVerified": true, "firstName": name,
			"lastName": "Test", "credentials": []any{map[string]any{"type": "password", "value": u.Password}},
		}
		if own, ok := u.Claims["groups"].([]string); ok {
			person["groups"] = own
			for _, g := range own {
				groups[g] = true
			}
		}
		if own, ok := u.Claims["roles"].([]string); ok {
			person["realmRoles"] = own
			for _, role := range own {
				roles[role] = true
			}
		}
		people = append(people, person)
	}
	r["users"], r["groups"], r["roles"] = people, named(groups), map[string]any{"realm": named(roles)}
	return r
}

func mapper(name, kind, claim string) map[string]any {
	return map[string]any{
		"name": name, "protocol": "openid-connect", "protocolMapper": kind, "config": map[string]any{
			"claim.name": claim, "id.token.claim": "true", "access.token.claim": "true", "full.path": "false",
			"multivalued": "true", "jsonType.label": "String",
		},
	}
}

func named(set map[string]bool) []any {
	var list []any
	for name := range set {
		list = append(list, map[string]any{"name": name})
	}
	return list
}

func (k *Keycloak) call(ctx context.Context, b *Browser, token, path string, body map[string]any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.base()+path, strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	v, err := b.send(req, Request{Method: http.MethodPost})
	if err == nil && v.Status != http.StatusCreated {
		err = fmt.Errorf("POST %s of Keycloak: status %d: %s", path, v.Status, v.Body)
	}
	return err
}
