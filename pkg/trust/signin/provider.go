package signin

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
)

const (
	// pause is how long the provider is not asked again after it was asked, also for a new key.
	pause = 5 * time.Second
	// What the provider publishes is asked for again after usually, or as the provider says within the bounds.
	usually, atLeast, atMost = 10 * time.Minute, time.Minute, time.Hour
	// slots bounds the codes that are redeemed at the same time.
	slots = 16
)

// Options of a Provider. All are required but RedirectURL and Log.
type Options struct {
	// Issuer is the provider's name for itself, ClientID and ClientSecret are what it has given to this client.
	Issuer, ClientID, ClientSecret string
	// RedirectURL is the page of the console; empty means the page that the sign-in begins at.
	RedirectURL string
	// Scopes are requested in addition to openid.
	Scopes []string
	// GroupsClaim is the claim of the id_token with the groups of a user.
	GroupsClaim string
	Client      *oidc.Client
	// Seal seals a text for a place, and Open opens it.
	Seal, Open func(text, place string) (string, error)
	Now        func() time.Time
	Log        *slog.Logger
}

// Provider signs users in. It is safe for concurrent use.
type Provider struct {
	opts Options
	// redeeming has an element for each code that is being redeemed.
	redeeming chan struct{}

	// asking is full while the provider is asked; whoever puts in its element may use what follows.
	asking chan struct{}
	answer oidc.Answer
	// tried is when the provider was last asked, learned when it last answered, and fault why it did not since.
	tried, learned time.Time
	fault          error

	mu sync.Mutex
	// used has the sign-ins that have ended with a user, until they expire.
	used map[string]time.Time
}

// Refused is why somebody is not signed in, for that person.
type Refused string

func (r Refused) Error() string { return string(r) }

// Unavailable is why nobody can be signed in now.
type Unavailable string

func (u Unavailable) Error() string { return string(u) }

// New returns a provider that has not been asked yet.
func New(o Options) *Provider {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Provider{
		opts: o, redeeming: make(chan struct{}, slots), asking: make(chan struct{}, 1), used: map[string]time.Time{},
	}
}

// Issuer returns the provider's name for itself.
func (p *Provider) Issuer() string { return p.opts.Issuer }

// learn returns what the provider publishes. after is when it has to have been learned at the earliest, if the provider
// may be asked again; without an answer, what was known before is used.
func (p *Provider) learn(ctx context.Context, after time.Time) (oidc.Answer, error) {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return oidc.Answer{}, ctx.Err()
	}
	now := p.opts.Now()
	old := p.learned.IsZero() || p.learned.Before(after) || now.Sub(p.learned) >= lifetime(p.answer.MaxAge)
	if old && (p.tried.IsZero() || now.Sub(p.tried) >= pause) {
		p.tried = now
		// Others wait for the answer too, and it has an end of its own.
		a, err := p.opts.Client.Ask(context.WithoutCancel(ctx), model.ProviderSource{Issuer: p.opts.Issuer, Discover: true}, nil)
		if err == nil && (a.AuthorizationEndpoint == "" || a.TokenEndpoint == "") {
			err = fmt.Errorf("the discovery document has no authorization_endpoint or no token_endpoint: check --console-oidc-issuer")
		}
		if p.fault = err; err == nil {
			p.answer, p.learned = a, now
		} else {
			p.opts.Log.WarnContext(ctx, "identity provider of the console does not answer", "issuer", p.opts.Issuer, "err", err)
		}
	}
	if p.learned.IsZero() {
		return oidc.Answer{}, p.away(p.fault)
	}
	return p.answer, nil
}

// away says that the provider cannot be used.
func (p *Provider) away(err error) error {
	return Unavailable(fmt.Sprintf("the identity provider %s cannot be used now: %s; tokens still work", p.opts.Issuer, err))
}

func lifetime(says time.Duration) time.Duration {
	if says == 0 {
		return usually
	}
	return min(max(says, atLeast), atMost)
}

// use notes that a sign-in has ended with a user, and reports whether it is the first time.
func (p *Provider) use(id string, expires time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.opts.Now()
	for other, end := range p.used {
		if !now.Before(end) {
			delete(p.used, other)
		}
	}
	_, before := p.used[id]
	p.used[id] = expires
	return !before
}
