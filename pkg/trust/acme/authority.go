package acme

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const (
	// requestTimeout bounds a request with its answer, answerBytes the answer.
	requestTimeout = 30 * time.Second
	answerBytes    = 1 << 20
	// pollEvery is the time between questions about an order, if the authority does not say.
	pollEvery = 500 * time.Millisecond
)

// client sends requests to an authority, under one account.
type client struct {
	protocol.Client

	mu      sync.Mutex
	account protocol.Account // without a Location before the authority knows it
}

// account identifies the account at an authority: another one for each address and external account.
func (a *authority) account() string {
	external := ""
	if e := a.config.ExternalAccount; e != nil {
		external = e.KeyID
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{a.config.URL(), a.config.Email, external}, "\n")))
	return hex.EncodeToString(sum[:16])
}

// clientOf returns the client for an authority. It is made again when the authorities that verify the directory change.
func (w *Watch) clientOf(a *authority) (*client, error) {
	id := a.account()
	if a.ca != nil {
		id += " " + a.ca.Fingerprint
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.clients[id]; c != nil {
		return c, nil
	}
	authorities := w.opts.Authorities
	if a.ca != nil {
		authorities = a.ca.Cert
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(authorities)) {
		return nil, errors.New("the directory cannot be verified, because no certificate authorities were found on the system: " +
			"name a secret in ca_certificate, or start with --upstream-ca-file")
	}
	c := &client{}
	c.Directory, c.UserAgent, c.PollInterval, c.PollTimeout = a.config.URL(), "gatehouse", pollEvery, attemptTimeout
	c.HTTPClient = &http.Client{
		Timeout: requestTimeout,
		Transport: bounded{&http.Transport{
			DialContext: w.opts.Dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool},
			MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: mostOrders + mostFailing, IdleConnTimeout: time.Minute,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	w.clients[id] = c
	return c, nil
}

// bounded limits what is read of an answer, and notes for how long it says to wait.
type bounded struct{ http.RoundTripper }

// laterKey is the key of a context for a *time.Duration.
type laterKey struct{}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("the authority names %s, which is not https", r.URL.Redacted())
	}
	res, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if later, ok := r.Context().Value(laterKey{}).(*time.Duration); ok && res.StatusCode >= http.StatusBadRequest {
		*later = max(*later, retryAfter(res.Header.Get("Retry-After"), time.Now()))
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, answerBytes), res.Body}
	return res, nil
}

// retryAfter reads the header of this name; 0 means that it says nothing.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return min(time.Duration(min(seconds, 1<<30))*time.Second, longestHold)
	}
	at, err := http.ParseTime(text)
	if err != nil || !at.After(now) {
		return 0
	}
	return min(at.Sub(now), longestHold)
}

// use returns the account, which it registers if the authority does not know it yet.
func (c *client) use(ctx context.Context, w *Watch, a *authority) (protocol.Account, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.account.Location != "" {
		return c.account, nil
	}
	stored, key, err := w.storedAccount(ctx, a.account())
	if err != nil {
		return protocol.Account{}, err
	}
	account := protocol.Account{Location: stored.URL, PrivateKey: key, TermsOfServiceAgreed: true}
	if a.config.Email != "" {
		account.Contact = []string{"mailto:" + a.config.Email}
	}
	if account.Location == "" {
		if account, err = c.register(ctx, w, a, account); err != nil {
			return protocol.Account{}, err
		}
		stored.URL = account.Location
		if err := w.opts.Store.SaveAccount(ctx, w.opts.Holder, stored); err != nil {
			return protocol.Account{}, err
		}
		w.opts.Log.Info("account registered at a certificate authority", "directory", a.config.URL(), "account", account.Location)
	}
	c.account = account
	return account, nil
}

func (c *client) register(ctx context.Context, w *Watch, a *authority, account protocol.Account) (protocol.Account, error) {
	if e := a.config.ExternalAccount; e != nil {
		mac, err := a.config.OpenHMACKey(a.name, w.opts.Store.Unseal)
		if err != nil {
			return account, fmt.Errorf("opening the key of the external account: %w", err)
		}
		if err := account.SetExternalAccountBinding(ctx, &c.Client, protocol.EAB{KeyID: e.KeyID, MACKey: mac}); err != nil {
			return account, fmt.Errorf("binding the external account: %w", err)
		}
	}
	account, err := c.NewAccount(ctx, account)
	if err != nil {
		err = &unregistered{err}
	}
	return account, err
}

// unregistered is why there is no account: nothing about a host.
type unregistered struct{ error }

// Unwrap returns the cause.
func (u *unregistered) Unwrap() error { return u.error }

// forget makes the next use register the account again: the authority does not know it.
func (c *client) forget(ctx context.Context, w *Watch, a *authority) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account = protocol.Account{}
	stored, err := w.opts.Store.Account(ctx, a.account())
	if err != nil || stored == nil {
		return err
	}
	stored.URL = ""
	return w.opts.Store.SaveAccount(ctx, w.opts.Holder, stored)
}

// storedAccount returns an account with its key. The key of a new one is stored before anybody sees it, so that no
// account is ever lost.
func (w *Watch) storedAccount(ctx context.Context, id string) (*store.Account, crypto.Signer, error) {
	stored, err := w.opts.Store.Account(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if stored != nil {
		text, err := w.opts.Store.Unseal(stored.Key, stored.Place())
		if err != nil {
			return nil, nil, fmt.Errorf("opening the key of the account: %w", err)
		}
		key, err := readKey(text)
		return stored, key, err
	}
	text, key, err := makeKey(model.KeyP256)
	if err != nil {
		return nil, nil, err
	}
	stored = &store.Account{ID: id, Key: text}
	return stored, key, w.opts.Store.SaveAccount(ctx, w.opts.Holder, stored)
}

// Dial is net.Dialer.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)
