package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// place is what sealed sign-ins are sealed for.
	place = "console/sign-in"
	// patience is how long somebody may take at the provider.
	patience = 10 * time.Minute
	// maxURL bounds the address of a page.
	maxURL = 2048
)

// Begun is a sign-in that has begun.
type Begun struct {
	// URL is the page of the provider.
	URL string
	// State is what the provider returns with the code.
	State string
	// SignIn is the sign-in itself, sealed. The page keeps it, and sends it with the code.
	SignIn string
}

// pending is what is sealed.
type pending struct {
	Issuer, Client, Redirect, State, Nonce, Verifier string
	Expires                                          time.Time
}

// Begin begins a sign-in of the console at an address, which ends with /ui/.
func (p *Provider) Begin(ctx context.Context, page string) (Begun, error) {
	if to := p.opts.RedirectURL; to != "" && page != to {
		return Begun{}, Refused("with the identity provider, people sign in at " + to + ": open the console there")
	}
	a, err := p.learn(ctx, time.Time{})
	if err != nil {
		return Begun{}, err
	}
	s := pending{
		Issuer: p.opts.Issuer, Client: p.opts.ClientID, Redirect: page,
		State: random(), Nonce: random(), Verifier: random(), Expires: p.opts.Now().Add(patience),
	}
	text, err := json.Marshal(s)
	if err != nil {
		return Begun{}, err
	}
	sealed, err := p.opts.Seal(string(text), place)
	if err != nil {
		return Begun{}, fmt.Errorf("sealing a sign-in: %w", err)
	}
	u, err := url.Parse(a.AuthorizationEndpoint)
	if err != nil {
		return Begun{}, p.away(err)
	}
	challenge := sha256.Sum256([]byte(s.Verifier))
	q := u.Query() // it may have one (RFC 6749 section 3.1)
	for name, value := range map[string]string{
		"response_type": "code", "client_id": s.Client, "redirect_uri": s.Redirect, "state": s.State, "nonce": s.Nonce,
		"scope":          strings.Join(slices.Concat([]string{"openid"}, p.opts.Scopes), " "),
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return Begun{URL: u.String(), State: s.State, SignIn: sealed}, nil
}

// CheckPage says why an address cannot be that of the console; empty if it can. origin is where the browser says that
// the page is, empty if it says nothing.
func CheckPage(page, origin string) string {
	u, err := url.Parse(page)
	switch {
	case err != nil || len(page) > maxURL || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(page, "#") || !strings.HasSuffix(u.EscapedPath(), "/ui/"):
		return "is not the address of the console, such as https://gateway.example.com/ui/"
	case origin != "" && !strings.EqualFold(u.Scheme+"://"+u.Host, origin):
		return "is not at the origin of the page that sends it"
	}
	return ""
}

// random returns 256 random bits.
func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails; see its documentation
	return base64.RawURLEncoding.EncodeToString(b)
}
