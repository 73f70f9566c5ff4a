package acme

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

const (
	// attemptTimeout bounds an attempt with all its steps.
	attemptTimeout = 3 * time.Minute
	// appliedTimeout bounds one wait for the Envoys, and lagPause is the time to the next one. A renewal does not wait
	// longer than mostLag in all for an Envoy that hangs.
	appliedTimeout = 15 * time.Second
	lagPause       = 2 * time.Second
	mostLag        = 10 * time.Minute
	// mostChain bounds a chain, in bytes.
	mostChain = 64 << 10
)

// attempt is one attempt to get a certificate. It has its own copy of the row.
type attempt struct {
	watch *Watch
	want  wanted
	row   row
	// asked is row.Asked at its start.
	asked   int64
	client  *client
	account protocol.Account
}

// postponed says that an attempt waits for something that is no failure.
type postponed struct {
	why   string
	pause time.Duration
}

// Error implements error.
func (p *postponed) Error() string { return p.why }

// run begins an order, or continues that of the row.
func (a *attempt) run(ctx context.Context) (err error) {
	w := a.watch
	if !a.want.byDNS() { // otherwise the host must be served before anybody asks for it
		if err := a.applied(ctx); err != nil {
			return err
		}
	}
	if a.client, err = w.clientOf(a.want.from); err != nil {
		return err
	}
	if a.account, err = a.client.use(ctx, w, a.want.from); err != nil {
		return err
	}
	if a.row.state.Order != "" && a.row.state.Account != a.account.Location {
		a.row.state.Order, a.row.OrderKey = "", "" // the order of another account
	}
	order, err := a.order(ctx)
	if err != nil {
		return err
	}
	if order.Status == protocol.StatusPending {
		for _, at := range order.Authorizations {
			if err := a.authorize(ctx, at); err != nil {
				return err
			}
		}
		order.Status = protocol.StatusReady
	}
	if order, err = a.finish(ctx, order); err != nil {
		return err
	}
	return a.download(ctx, order)
}

// order returns the order that runs, or a new one. It is stored before anything else happens with it.
func (a *attempt) order(ctx context.Context) (protocol.Order, error) {
	if at := a.row.state.Order; at != "" {
		order, err := a.client.GetOrder(ctx, a.account, protocol.Order{Location: at})
		var problem protocol.Problem
		switch {
		case err == nil && order.Status != protocol.StatusInvalid:
			return order, nil
		case err != nil && (!errors.As(err, &problem) || problem.Status != http.StatusNotFound && problem.Type != protocol.ProblemTypeMalformed):
			return order, err
		}
		a.row.state.Order = "" // nothing becomes of it any more
	}
	if err := a.offered(ctx); err != nil {
		return protocol.Order{}, err
	}
	if err := a.watch.spend(ctx, a.want.from); err != nil {
		return protocol.Order{}, err
	}
	text, _, err := makeKey(a.want.from.config.KeyType)
	if err != nil {
		return protocol.Order{}, err
	}
	order := protocol.Order{
		Identifiers: []protocol.Identifier{{Type: "dns", Value: a.want.host}}, Profile: a.want.from.config.Profile, Replaces: a.replaces(ctx),
	}
	made, err := a.client.NewOrder(ctx, a.account, order)
	var problem protocol.Problem
	if err != nil && order.Replaces != "" && errors.As(err, &problem) && problem.Type != protocol.ProblemTypeRateLimited &&
		problem.Status < http.StatusInternalServerError {
		order.Replaces = "" // it may have been replaced already
		made, err = a.client.NewOrder(ctx, a.account, order)
	}
	if err != nil {
		return made, err
	}
	a.row.OrderKey, a.row.state.Order, a.row.state.Account = text, made.Location, a.account.Location
	return made, a.watch.save(ctx, &a.row)
}

// offered refuses a profile that the authority does not have: acmez would, in words of its own.
func (a *attempt) offered(ctx context.Context) error {
	profile := a.want.from.config.Profile
	directory, err := a.client.GetDirectory(ctx)
	if err != nil || profile == "" {
		return err
	}
	var names []string
	if directory.Meta != nil {
		names = slices.Sorted(maps.Keys(directory.Meta.Profiles))
	}
	if slices.Contains(names, profile) {
		return nil
	}
	return protocol.Problem{
		Type: protocol.ProblemTypeNamespace + "invalidProfile", Detail: fmt.Sprintf("there is no profile %q, only %q", profile, names),
	}
}

// replaces names the certificate that a renewal replaces: authorities that know it exempt the order from limits.
func (a *attempt) replaces(ctx context.Context) string {
	directory, err := a.client.GetDirectory(ctx)
	leaf := a.row.Secret().Leaf()
	if err != nil || directory.RenewalInfo == "" || a.row.certificate == nil || leaf == nil || a.row.state.Directory != a.want.from.config.URL() {
		return ""
	}
	id, err := protocol.ARIUniqueIdentifier(leaf)
	if err != nil {
		return ""
	}
	return id
}

// token matches the tokens of RFC 8555 section 8.3, which are base64url.
var token = regexp.MustCompile(`^[A-Za-z0-9_-]{16,256}$`)

// authorize lets the authority verify that the host is the gateway's.
func (a *attempt) authorize(ctx context.Context, at string) error {
	authz, err := a.client.GetAuthorization(ctx, a.account, at)
	if err != nil {
		return err
	}
	if authz.Status == protocol.StatusValid {
		return nil
	}
	kind := a.want.challenge()
	challenge, ok := challengeOf(authz, kind)
	switch {
	case authz.Status != protocol.StatusPending: // PollAuthorization says why
	case !ok:
		return fmt.Errorf("the authority does not offer the challenge %s for %s", kind, a.want.host)
	case !token.MatchString(challenge.Token) || !strings.HasPrefix(challenge.KeyAuthorization, challenge.Token+"."):
		return errors.New("the authority sent a token that is not base64url")
	default:
		if err := a.answer(ctx, challenge); err != nil {
			return err
		}
		if challenge.Status == protocol.StatusPending {
			if _, err := a.client.InitiateChallenge(ctx, a.account, challenge); err != nil {
				return err
			}
		}
	}
	_, err = a.client.PollAuthorization(ctx, a.account, authz)
	return err
}

// answer makes the answer to a challenge visible for the authority.
func (a *attempt) answer(ctx context.Context, challenge protocol.Challenge) error {
	if a.want.byDNS() {
		return a.publish(ctx, challenge)
	}
	a.row.state.Token, a.row.state.Answer = challenge.Token, challenge.KeyAuthorization
	if err := a.watch.save(ctx, &a.row); err != nil {
		return err
	}
	return a.applied(ctx)
}

func challengeOf(authz protocol.Authorization, kind string) (protocol.Challenge, bool) {
	for _, c := range authz.Challenges {
		if c.Type == kind {
			return c, true
		}
	}
	return protocol.Challenge{}, false
}

// applied waits until all Envoys that serve the host have what was stored. A proxy without Envoys holds nothing up if
// another one serves the host.
func (a *attempt) applied(ctx context.Context) error {
	now := a.watch.opts.Now()
	waiting, cancel := context.WithTimeout(ctx, appliedTimeout)
	services, proxies := a.watch.served(a.want.host)
	lags := a.watch.wait(waiting, services)
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	empty := map[string]bool{}
	for _, l := range lags {
		if l.Reason == status.NotConnected {
			empty[l.Proxy] = true
		}
	}
	missing := len(empty) >= proxies
	if !missing {
		lags = slices.DeleteFunc(lags, func(l status.Lag) bool { return l.Reason == status.NotConnected })
	}
	if len(lags) == 0 {
		a.row.state.LagsSince = time.Time{}
		return nil
	}
	if a.row.state.LagsSince.IsZero() {
		a.row.state.LagsSince = now
	}
	if !missing && now.Sub(a.row.state.LagsSince) > mostLag {
		a.watch.opts.Log.Warn("a certificate is ordered although not all Envoys answer challenges", "host", a.want.host,
			"reason", lags[0].Message)
		return nil
	}
	return &postponed{"not all Envoys serve the host yet: " + lags[0].Message, lagPause}
}

// finish sends the signing request, if that was not done, and waits for the certificate.
func (a *attempt) finish(ctx context.Context, order protocol.Order) (protocol.Order, error) {
	switch order.Status {
	case protocol.StatusValid:
		return order, nil
	case protocol.StatusProcessing:
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for order.Status == protocol.StatusProcessing {
			select {
			case <-ctx.Done():
				return order, ctx.Err()
			case <-tick.C:
			}
			var err error
			if order, err = a.client.GetOrder(ctx, a.account, order); err != nil {
				return order, err
			}
		}
		if order.Status == protocol.StatusValid {
			return order, nil
		}
		return order, fmt.Errorf("the authority has ended the order: %w", orderError(order))
	}
	text, err := a.orderKey()
	if err != nil {
		return order, err
	}
	key, err := readKey(text)
	if err != nil {
		return order, err
	}
	csr, err := request(a.want.host, key)
	if err != nil {
		return order, fmt.Errorf("making a signing request: %w", err)
	}
	return a.client.FinalizeOrder(ctx, a.account, order, csr)
}

func orderError(order protocol.Order) error {
	if order.Error != nil {
		return *order.Error
	}
	return fmt.Errorf("it is %s", order.Status)
}

func (a *attempt) orderKey() (string, error) {
	if !model.IsSealed(a.row.OrderKey) {
		return a.row.OrderKey, nil
	}
	return a.watch.opts.Store.Unseal(a.row.OrderKey, a.row.OrderPlace())
}

// download stores the certificate in place of the one before.
func (a *attempt) download(ctx context.Context, order protocol.Order) error {
	chains, err := a.client.GetCertificateChain(ctx, a.account, order.Certificate)
	if err != nil {
		return err
	}
	key, err := a.orderKey()
	if err != nil {
		return err
	}
	cert, err := choose(chains, key, a.want, a.watch.opts.Now())
	if err != nil {
		a.row.state.Order = "" // it gives the same answer again
		return err
	}
	if a.row.state.Test != nil {
		return a.passed(ctx, cert)
	}
	a.row.Cert, a.row.Key, a.row.OrderKey = cert, key, ""
	leaf := a.row.Secret().Leaf()
	s := a.row.state
	a.row.state = a.row.replaced(&certificate{notBefore: leaf.NotBefore, notAfter: leaf.NotAfter}, a.want.from.config.URL(), a.watch.opts.Now(), a.asked)
	a.row.state.Records, a.row.state.Removal = s.Records, s.Removal
	if err := a.watch.save(ctx, &a.row); err != nil {
		return err
	}
	a.watch.issued(&a.row)
	return nil
}

// choose returns the chain to serve: the first one, or the first with a certificate of the preferred issuer. What is wrong
// is wrong for any chain, because they begin with the same certificate.
func choose(chains []protocol.Certificate, key string, want wanted, now time.Time) (string, error) {
	if len(chains) == 0 {
		return "", errors.New("the authority sent no certificate")
	}
	chosen := chains[0]
	for _, c := range chains {
		if len(c.ChainPEM) <= mostChain && issuedBy(c, want.from.config.PreferredChain) {
			chosen = c
			break
		}
	}
	if len(chosen.ChainPEM) > mostChain {
		return "", fmt.Errorf("the authority sent a chain of %d bytes; at most %d are allowed", len(chosen.ChainPEM), mostChain)
	}
	s := &model.Secret{Name: "certificate", Cert: string(chosen.ChainPEM)}
	if errs := s.Validate(); len(errs) > 0 {
		return "", fmt.Errorf("the authority sent a certificate that cannot be served: it %s", errs[0].Message)
	}
	leaf := s.Leaf()
	switch _, err := tls.X509KeyPair(chosen.ChainPEM, []byte(key)); {
	case err != nil:
		return "", errors.New("the authority sent a certificate for another key")
	case leaf.VerifyHostname(want.host) != nil:
		return "", fmt.Errorf("the authority sent a certificate that is not for %s", want.host)
	case !leaf.NotAfter.After(now):
		return "", errors.New("the authority sent a certificate that has expired: compare its clock with that of this machine")
	}
	return string(chosen.ChainPEM), nil
}

func issuedBy(c protocol.Certificate, issuer string) bool {
	if issuer == "" {
		return true
	}
	for _, cert := range (&model.Secret{Cert: string(c.ChainPEM)}).Certificates() {
		if cert.Issuer.CommonName == issuer {
			return true
		}
	}
	return false
}
