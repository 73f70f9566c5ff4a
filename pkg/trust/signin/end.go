package signin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
)

// Answer is what the provider has told the page, with the sign-in that the page has kept.
type Answer struct {
	Code, State, SignIn string
	// Issuer is the parameter iss (RFC 9207); empty if there is none.
	Issuer string
}

// User is who has signed in.
type User struct {
	// Subject is the name that the provider gives to nobody else, ever.
	Subject string
	// Name is what people call the user; empty if nothing of use is known. Users may choose it.
	Name   string
	Groups []string
}

// again is what to do after most refusals.
const again = ": sign in again"

// End ends a sign-in: it redeems the code, and checks what it gets.
func (p *Provider) End(ctx context.Context, got Answer) (User, error) {
	s, err := p.open(got)
	if err != nil {
		return User{}, err
	}
	a, err := p.learn(ctx, time.Time{})
	if err != nil {
		return User{}, err
	}
	// Another provider must not get this one's code (RFC 9207 section 2.4).
	if got.Issuer != p.opts.Issuer && (got.Issuer != "" || a.NamesItself) {
		return User{}, Refused("the answer is not of the identity provider " + p.opts.Issuer + again)
	}
	began := p.opts.Now()
	raw, err := p.redeem(ctx, a, s, got.Code)
	if err != nil {
		return User{}, err
	}
	token, err := p.verify(ctx, a, raw)
	if err != nil {
		if a, err = p.learn(ctx, began); err != nil { // there may be a new key
			return User{}, err
		}
		if token, err = p.verify(ctx, a, raw); err != nil {
			return User{}, Refused("the id_token of the identity provider is refused (" + plain(err.Error()) + ")" + again)
		}
	}
	u, err := p.userOf(token, s)
	if err == nil && !p.use(s.State, s.Expires) {
		err = Refused("this sign-in has ended before" + again)
	}
	return u, err
}

// open opens the sign-in that the page has kept, and checks that the answer is to it.
func (p *Provider) open(got Answer) (s pending, err error) {
	text, err := p.opts.Open(got.SignIn, place)
	if err != nil || json.Unmarshal([]byte(text), &s) != nil || s.Issuer != p.opts.Issuer || s.Client != p.opts.ClientID {
		return s, Refused("the sign-in has not begun at this server" + again)
	}
	if !p.opts.Now().Before(s.Expires) {
		return s, Refused("the sign-in has taken more than 10 minutes" + again)
	}
	if subtle.ConstantTimeCompare([]byte(got.State), []byte(s.State)) != 1 {
		return s, Refused("the answer is to another sign-in (state)" + again)
	}
	return s, nil
}

// redeem returns the id_token for a code.
func (p *Provider) redeem(ctx context.Context, a oidc.Answer, s pending, code string) (string, error) {
	select {
	case p.redeeming <- struct{}{}:
		defer func() { <-p.redeeming }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {s.Redirect}, "code_verifier": {s.Verifier},
	}
	user, password := url.QueryEscape(s.Client), url.QueryEscape(p.opts.ClientSecret) // RFC 6749 section 2.3.1
	if a.PostsSecret {
		form.Set("client_id", s.Client)
		form.Set("client_secret", p.opts.ClientSecret)
		user, password = "", ""
	}
	reply, err := p.opts.Client.Token(ctx, a.TokenEndpoint, form, user, password, nil)
	if err != nil {
		return "", p.away(fmt.Errorf("the answer of %s %w", a.TokenEndpoint, err))
	}
	var body struct {
		IDToken string `json:"id_token"`
		Error   string `json:"error"`
	}
	readErr := json.Unmarshal(reply.Body, &body)
	switch {
	case reply.Status == http.StatusOK && readErr == nil && body.IDToken != "":
		return body.IDToken, nil
	case reply.Status == http.StatusOK:
		return "", p.away(fmt.Errorf("the answer of %s has no id_token", a.TokenEndpoint))
	case reply.Status == http.StatusUnauthorized, body.Error == "invalid_client", body.Error == "unauthorized_client":
		return "", p.away(errors.New("it refuses this client: check --console-oidc-client-id, the secret and the settings of the client"))
	case reply.Status == http.StatusBadRequest, reply.Status == http.StatusForbidden: // invalid_grant, which not all say
		return "", Refused("the identity provider refuses the code, which can be used once and for a short time" + again)
	}
	return "", p.away(fmt.Errorf("%s answers with the status %d", a.TokenEndpoint, reply.Status))
}

// algorithms are the signatures that anybody can check and only the provider can make.
func algorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// verify checks the signature, the issuer, the audience and the time of an id_token.
func (p *Provider) verify(ctx context.Context, a oidc.Answer, raw string) (*goidc.IDToken, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(a.JWKS), &set); err != nil {
		return nil, errors.New("the keys of the provider cannot be read")
	}
	keys := &goidc.StaticKeySet{}
	for _, k := range set.Keys {
		keys.PublicKeys = append(keys.PublicKeys, k.Key)
	}
	return goidc.NewVerifier(p.opts.Issuer, keys, &goidc.Config{
		ClientID: p.opts.ClientID, SupportedSigningAlgs: algorithms(), Now: p.opts.Now,
	}).Verify(ctx, raw)
}

// What names of users may contain, so that they can be read in a log and in the history, and none looks like another.
var (
	subjects = regexp.MustCompile(`^[!-~]{1,255}$`)
	names    = regexp.MustCompile(`^[A-Za-z0-9._@+-]{1,64}$`)
)

// userOf reads the user of a token that has been verified.
func (p *Provider) userOf(token *goidc.IDToken, s pending) (User, error) {
	claims := map[string]json.RawMessage{}
	if err := token.Claims(&claims); err != nil {
		return User{}, Refused("the claims of the id_token cannot be read" + again)
	}
	var by string // OpenID Connect Core 1.0, section 3.1.3.7
	if part := claims["azp"]; part != nil {
		if json.Unmarshal(part, &by) != nil || by != s.Client {
			return User{}, Refused("the id_token is for another client (azp)" + again)
		}
	} else if len(token.Audience) != 1 {
		return User{}, Refused("the id_token is for several clients, and does not say that it was issued to this one (azp)" + again)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(s.Nonce)) != 1 {
		return User{}, Refused("the id_token is of another sign-in (nonce)" + again)
	}
	if !subjects.MatchString(token.Subject) {
		return User{}, Refused("the name of the user (sub) is not 1 to 255 visible ASCII characters")
	}
	u := User{Subject: token.Subject, Groups: groupsOf(claims[p.opts.GroupsClaim])}
	if json.Unmarshal(claims["preferred_username"], &u.Name) != nil || !names.MatchString(u.Name) {
		u.Name = ""
	}
	return u, nil
}

// groupsOf reads a claim, a list of texts or one text.
func groupsOf(claim json.RawMessage) (list []string) {
	var one string
	if json.Unmarshal(claim, &one) == nil && one != "" {
		return []string{one}
	}
	if json.Unmarshal(claim, &list) != nil {
		return nil
	}
	return list
}

// plain returns a text that the provider may have influenced, for use in a sentence.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 200)]
}
