package acme

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"
)

// window is what an authority suggests about when to renew a certificate (RFC 9773 section 4.2).
type window struct {
	SuggestedWindow struct{ Start, End time.Time }
	// again is how long its answer holds; 0 means that it does not say.
	again time.Duration
}

// window asks for the window of a certificate. That of acmez refuses one of a second, which some authorities suggest for
// what they revoke.
func (c *client) window(ctx context.Context, leaf *x509.Certificate) (s window, err error) {
	directory, err := c.GetDirectory(ctx)
	if err != nil || directory.RenewalInfo == "" {
		return s, errors.Join(err, protocol.ErrUnsupported)
	}
	id, err := protocol.ARIUniqueIdentifier(leaf)
	if err != nil {
		return s, fmt.Errorf("naming the certificate: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, directory.RenewalInfo+"/"+id, http.NoBody)
	if err != nil {
		return s, fmt.Errorf("asking when to renew: %w", err)
	}
	res, err := c.HTTPClient.Do(r)
	if err != nil {
		return s, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return s, errors.Join(err, fmt.Errorf("the authority answers %d", res.StatusCode))
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("reading when to renew: %w", err)
	}
	if w := s.SuggestedWindow; w.Start.IsZero() || !w.End.After(w.Start) {
		return s, errors.New("the authority suggests a window that does not end after it begins")
	}
	s.again = retryAfter(res.Header.Get("Retry-After"), time.Now())
	return s, nil
}

// inform asks the authority when to renew the certificate. An authority that does not say leaves it to us.
func (a *attempt) inform(ctx context.Context) error {
	w, s := a.watch, &a.row.state
	now := w.opts.Now()
	s.InfoAt = now.Add(infoEvery)
	leaf := a.row.Secret().Leaf()
	c, err := w.clientOf(a.want.from)
	if err == nil && leaf != nil {
		var suggested window
		if suggested, err = c.window(ctx, leaf); err == nil {
			s.follow(suggested, now)
		}
	}
	if err != nil {
		w.opts.Log.Debug("the authority does not say when to renew", "host", a.want.host, "err", err)
	}
	return w.save(ctx, &a.row)
}

// follow keeps the time that was chosen as long as the authority still suggests it.
func (s *state) follow(suggested window, now time.Time) {
	start, end := suggested.SuggestedWindow.Start, suggested.SuggestedWindow.End
	if s.RenewAt.IsZero() || s.RenewAt.Before(start) || s.RenewAt.After(end) {
		s.RenewAt = start.Add(rand.N(max(end.Sub(start), 1))) //nolint:gosec // no secret
	}
	if suggested.again > 0 {
		// RFC 9773 section 4.3.3
		s.InfoAt = now.Add(min(max(suggested.again, time.Minute), lastRetry))
	}
}
