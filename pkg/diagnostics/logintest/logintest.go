package logintest

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
)

// allTime bounds a complete test.
const allTime = 45 * time.Second

// shortestHidden is the length from which texts are hidden in messages; shorter ones may be
// ordinary words.
const shortestHidden = 4

// The results of a step.
const (
	// OK: it is as it must be.
	OK = "ok"
	// Failed: no login can work.
	Failed = "failed"
	// Unclear: it could not be tried, or the answer proves nothing.
	Unclear = "unclear"
)

// Step is one step of a test.
type Step struct {
	// Name is a word: login, discovery, keys, configuration, certificate, gateway, scripts,
	// authorization or secret.
	Name string `json:"step"`
	// Result is OK, Failed or Unclear.
	Result string `json:"result"`
	// Message says what was seen, Advice what to do; both are for people.
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// Result is a test of a login.
type Result struct {
	Service string `json:"service_name"`
	Proxy   string `json:"proxy_name"`
	// By is the path of the filter or global config with the login.
	By string `json:"login"`
	// URL is where users reach the service.
	URL string `json:"url"`
	// OK says that no step has failed.
	OK    bool   `json:"ok"`
	Steps []Step `json:"steps"`
}

// Tester tests logins.
type Tester struct {
	// Client sends requests to identity providers.
	Client *oidc.Client
	// Settings are the settings for compiling services.
	Settings compile.Settings
	// Own is the proxy whose Envoy runs in this process; empty means none.
	Own string
	// Now is a clock; nil means time.Now.
	Now func() time.Time
}

// run is one test.
type run struct {
	Tester
	*Subject
	Result
	// via is the upstream of the provider; nil means a direct connection.
	via *oidc.Via
	// compiled is the login as Envoy receives it; nil if it cannot be enforced.
	compiled *credential.Login
	// request is the URL to which the gateway redirects a browser.
	request *url.URL
}

// Test tries a login.
func (t Tester) Test(ctx context.Context, s *Subject) Result {
	ctx, cancel := context.WithTimeout(ctx, allTime)
	defer cancel()
	r := &run{Tester: t, Subject: s, Result: Result{
		Service: s.service, Proxy: s.proxy, By: s.key.Path(), URL: s.target.String(), OK: true,
	}}
	if r.Now == nil {
		r.Now = time.Now
	}
	r.ok("login", "%s requires it, as client %q", r.By, s.login.ClientID)
	r.via = s.way()
	r.askProvider(ctx)
	r.checkConfiguration()
	r.checkCertificate()
	if r.compiled == nil {
		return r.Result
	}
	r.askGateway(ctx)
	r.askAuthorization(ctx)
	r.trySecret(ctx)
	return r.Result
}

// add adds a step. A provider's answer may repeat what it was sent, so secrets are hidden.
func (r *run) add(step Step) {
	if r.compiled != nil && len(r.compiled.ClientSecret) >= shortestHidden {
		step.Message = strings.ReplaceAll(step.Message, r.compiled.ClientSecret, "[client_secret]")
	}
	r.Steps = append(r.Steps, step)
	r.OK = r.OK && step.Result != Failed
}

func (r *run) ok(name, format string, args ...any) {
	r.add(Step{Name: name, Result: OK, Message: fmt.Sprintf(format, args...)})
}

func (r *run) fail(name, advice, format string, args ...any) {
	r.add(Step{Name: name, Result: Failed, Message: fmt.Sprintf(format, args...), Advice: advice})
}

func (r *run) unclear(name, advice, format string, args ...any) {
	r.add(Step{Name: name, Result: Unclear, Message: fmt.Sprintf(format, args...), Advice: advice})
}

// way returns the upstream through which the provider is reached; nil if the login names
// none.
func (s *Subject) way() *oidc.Via {
	named := s.config.Service(s.service).Named
	if s.key.Kind == model.KindGlobalConfig {
		named = s.config.Proxy(s.proxy).Named
	}
	via := &oidc.Via{Secrets: map[string]*model.Secret{}}
	for _, obj := range named {
		if secret, ok := obj.(*model.Secret); ok {
			via.Secrets[secret.Name] = secret
		}
	}
	if via.Upstream, _ = named[model.UpstreamKey(s.login.Upstream)].(*model.Upstream); via.Upstream != nil {
		return via
	}
	return nil
}

// askProvider reads the discovery document and the keys.
func (r *run) askProvider(ctx context.Context) {
	source := r.login.Source()
	if source == (model.ProviderSource{}) {
		r.unclear("keys", "give issuer, or jwks_uri",
			"the id_token is not verified: the keys of the identity provider are not known")
		return
	}
	answer, err := r.Client.Ask(ctx, source, r.via)
	name := "keys"
	if source.Discover && answer.JWKSURI == "" {
		name = "discovery"
	}
	if source.Discover && name == "keys" {
		r.ok("discovery", "%s names its endpoints", source.Issuer)
	}
	if err != nil {
		r.fail(name, "", "%s", err)
		return
	}
	r.ok("keys", "%s has %d that verify signatures", answer.JWKSURI, strings.Count(answer.JWKS, `"kty"`))
	if err := r.learn(answer.Provider); err != nil {
		r.fail("configuration", "", "%s", err)
	}
}

// checkConfiguration compiles the login as Envoy receives it.
func (r *run) checkConfiguration() {
	l, err := r.Subject.compiled(r.Settings)
	if err != nil {
		r.fail("configuration", "", "the service answers 503: %s", err)
		return
	}
	r.compiled = l
	if u, err := url.Parse(l.TokenEndpoint); err == nil && r.login.Address != nil {
		r.via = &oidc.Via{Upstream: r.login.DerivedUpstream(u), Derived: true}
	}
	r.ok("configuration", "Envoy can enforce it; users come back to %s", r.redirectURI())
}

// redirectURI returns the URL to which the provider redirects users.
func (r *run) redirectURI() string {
	return strings.NewReplacer("%REQ(x-forwarded-proto)%", r.target.Scheme, "%REQ(:authority)%",
		r.target.Host).Replace(r.compiled.RedirectURI)
}

// checkCertificate checks for HTTPS, which cookies need: they are Secure.
func (r *run) checkCertificate() {
	host := r.target.Hostname()
	proxy := r.config.Proxy(r.proxy).Proxy
	var others []string
	for _, secret := range r.config.Service(r.service).Secrets {
		leaf := secret.Leaf()
		switch {
		case !secret.IsPair() || leaf == nil:
		case leaf.VerifyHostname(host) != nil:
			others = append(others, secret.Name)
		case r.Now().After(leaf.NotAfter):
			r.fail("certificate", "store a new pair, with gatehouse secret set "+secret.Name, "that of secret %q expired on %s",
				secret.Name, leaf.NotAfter.UTC().Format(time.DateOnly))
			return
		default:
			r.ok("certificate", "secret %q has one for %s", secret.Name, host)
			return
		}
	}
	advice := "store a pair, with gatehouse secret set NAME --cert FILE --key FILE, and attach it, " +
		"with gatehouse attach secret/NAME service/" + r.service
	switch {
	case proxy.TrustedHops > 0:
		r.unclear("certificate", "the proxy in front of the gateway needs one",
			"the service has none for %s; the proxy has trusted hops, so that one in front may end TLS", host)
	case len(others) > 0:
		r.fail("certificate", advice, "those of the service are not for %s (%s)", host, strings.Join(others, ", "))
	default:
		r.fail("certificate", advice, "the service has none: a login needs https, "+
			"because browsers keep its cookies over https only")
	}
}
