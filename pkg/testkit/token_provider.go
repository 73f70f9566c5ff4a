package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// TokenProvider is a Provider at which everybody is logged in at once. A spec may have it forge its tokens.
type TokenProvider struct {
	*Provider
	// Client and Secret are those of its only client.
	Client, Secret string

	mu sync.Mutex
	// Reuse says that a code can be used more than once, and Forge replaces an id_token.
	reuse bool
	forge func(claims map[string]any) string
	key   *ecdsa.PrivateKey
	codes map[string]grant
	// redeemed are the calls of the token endpoint.
	redeemed []*http.Request
}

// grant is what a code stands for.
type grant struct {
	request url.Values
	claims  map[string]any
}

// StartTokenProvider starts one; the caller closes it.
func StartTokenProvider() (*TokenProvider, error) {
	p, err := StartProvider(CertificateOptions{})
	if err != nil {
		return nil, err
	}
	t := &TokenProvider{Provider: p, Client: "gatehouse", Secret: "a/secret+of the:client", codes: map[string]grant{}}
	p.Handle("/token", t.token)
	return t, t.Rotate()
}

// Rotate replaces its key.
func (t *TokenProvider) Rotate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := json.Marshal(jose.JSONWebKey{Key: key.Public(), Use: "sig"})
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.key = key
	t.mu.Unlock()
	t.SetKeys(string(public))
	return nil
}

// SetReuse says whether a code can be used more than once, which no provider may allow.
func (t *TokenProvider) SetReuse(reuse bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reuse = reuse
}

// SetForge has it answer with other id_tokens than those that it would sign; nil ends that.
func (t *TokenProvider) SetForge(forge func(claims map[string]any) string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forge = forge
}

// Redeemed returns the calls of its token endpoint.
func (t *TokenProvider) Redeemed() []*http.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.redeemed
}

// LogIn logs a user in who was sent to the URL, and returns the code and the state. claims are names and values that
// replace those of the id_token; nil removes one.
func (t *TokenProvider) LogIn(address string, claims map[string]any) (code, state string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", err
	}
	q := u.Query()
	now := time.Now()
	all := map[string]any{
		"iss": t.Issuer(), "aud": q.Get("client_id"), "nonce": q.Get("nonce"), "sub": "1", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for name, value := range claims {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	code = rand.Text()
	t.codes[code] = grant{q, all}
	return code, q.Get("state"), nil
}

// Sign returns an id_token.
func (t *TokenProvider) Sign(claims map[string]any) (string, error) {
	return SignToken(jose.ES256, t.key, claims)
}

// SignToken returns an id_token with any key.
func SignToken(algorithm jose.SignatureAlgorithm, key any, claims map[string]any) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(text)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// token is the token endpoint.
func (t *TokenProvider) token(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := r.ParseForm()
	t.redeemed = append(t.redeemed, r)
	w.Header().Set("Content-Type", "application/json")
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":%q}`, code)
	}
	id, secret, basic := r.BasicAuth()
	if basic { // RFC 6749 section 2.3.1: both are encoded
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	code := r.PostForm.Get("code")
	g, known := t.codes[code]
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	switch {
	case err != nil || id != t.Client || secret != t.Secret:
		refuse(http.StatusUnauthorized, "invalid_client")
		return
	case !known || r.PostForm.Get("redirect_uri") != g.request.Get("redirect_uri") || g.request.Get("code_challenge_method") != "S256" ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != g.request.Get("code_challenge"):
		refuse(http.StatusBadRequest, "invalid_grant")
		return
	}
	if !t.reuse {
		delete(t.codes, code)
	}
	raw, err := t.Sign(g.claims)
	if t.forge != nil {
		raw = t.forge(g.claims)
	}
	if err != nil {
		refuse(http.StatusInternalServerError, "server_error")
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"token_type": "Bearer", "access_token": "x", "id_token": raw})
}
