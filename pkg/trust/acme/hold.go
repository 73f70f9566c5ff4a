package acme

import (
	"context"
	"maps"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Holds are until when nothing is ordered for an account or for a registered domain, and when an account has its whole
// ration of orders again. They are stored, because another replica, or this one after a restart, would exceed the limits
// of the authority otherwise. Each is of one account, and so of one authority.
func (a *authority) accountHold() string { return "account " + a.account() }

func (a *authority) domainHold(domain string) string { return "domain " + a.account() + " " + domain }

func (a *authority) rationHold() string { return "ration " + a.account() }

// hostHold is kept in memory only: the store is away.
func hostHold(host string) string { return "host " + host }

// recall reads the holds that another holder of the lease, or an earlier process, has stored.
func (w *Watch) recall(ctx context.Context) bool {
	reading, cancel := context.WithTimeout(ctx, leaseEvery)
	defer cancel()
	stored, err := w.opts.Store.Holds(reading)
	if err != nil {
		if ctx.Err() == nil {
			w.opts.Log.Warn("limits of authorities not read, trying again before anything is ordered", "err", err)
		}
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, until := range stored {
		w.holds[id] = later(w.holds[id], until)
	}
	return true
}

// keep stores a hold.
func (w *Watch) keep(ctx context.Context, id string, until time.Time) error {
	now := w.opts.Now()
	w.mu.Lock()
	maps.DeleteFunc(w.holds, func(_ string, until time.Time) bool { return !until.After(now) })
	w.holds[id] = later(w.holds[id], until)
	w.mu.Unlock()
	return w.opts.Store.SaveHold(ctx, w.opts.Holder, id, until, now)
}

// hold keeps other orders back that would meet the same limit: those of the account for what the authority says about
// orders or accounts, otherwise those below the same registered domain.
func (w *Watch) hold(ctx context.Context, a *attempt, s *state, pause time.Duration, now time.Time) {
	until := now.Add(min(pause, longestHold))
	s.Due = later(s.Due, until)
	id := a.want.from.accountHold()
	if d := domainOf(a.want.host); strings.Contains(s.Error, d) {
		id = a.want.from.domainHold(d)
	}
	if err := w.keep(ctx, id, until); err != nil && ctx.Err() == nil && !model.IsKind(err, model.Conflict) {
		w.opts.Log.Warn("limit of an authority not stored", "host", a.want.host, "err", err)
	}
}

// pause keeps an attempt back whose state could not be stored.
func (w *Watch) pause(a *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds[hostHold(a.want.host)] = w.opts.Now().Add(longestLook)
}

// heldUntil returns until when nothing may be ordered for a host, and for what the authority says so; empty means that the
// store is away. It requires mu.
func (w *Watch) heldUntil(want wanted, now time.Time) (until time.Time, what string) {
	last := now.Add(longestHold) // later times are from before the clock was set back
	if away := w.holds[hostHold(want.host)]; away.After(now) && !away.After(last) {
		return away, ""
	}
	domain := domainOf(want.host)
	until, what = w.holds[want.from.accountHold()], "of the account"
	if at := w.holds[want.from.domainHold(domain)]; at.After(until) {
		until, what = at, "for "+domain
	}
	if until.After(last) {
		until = last
	}
	return until, what
}

// postpone returns why an order waits for the authority to allow it.
func (w *Watch) postpone(want wanted) error {
	now := w.opts.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	until, what := w.heldUntil(want, now)
	return &postponed{"the authority limits orders " + what + " until " + until.UTC().Format(time.RFC3339), max(until.Sub(now), time.Second)}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// domainOf returns the domain that somebody has registered.
func domainOf(host string) string {
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return domain
}

// ration bounds the new orders of an account: so many at once, and one more after each interval.
type ration struct {
	every time.Duration
	most  int
}

// rationOf is the ration of an account. Let's Encrypt allows 300 orders in three hours.
func rationOf(c *model.ACMEConfig) ration {
	if c.Directory == model.ACMEStaging || c.Directory == model.ACMEProduction {
		return ration{36 * time.Second, 250}
	}
	return ration{100 * time.Millisecond, 100}
}

// take returns when the whole ration is there again after one more order, or how long that order has to wait. whole is
// when it would be there without it.
func (r ration) take(whole, now time.Time) (after time.Time, pause time.Duration) {
	last := now.Add(time.Duration(r.most) * r.every)
	if whole.Before(now) || whole.After(last) { // it is whole; or the clock was set back, and nobody knows
		whole = now
	}
	after = whole.Add(r.every)
	return after, max(after.Sub(last), 0)
}

// spend takes an order of the account's ration. That is stored before the authority hears of the order.
func (w *Watch) spend(ctx context.Context, from *authority) error {
	id := from.rationHold()
	w.mu.Lock()
	after, pause := rationOf(from.config).take(w.holds[id], w.opts.Now())
	if pause == 0 {
		w.holds[id] = after
	}
	w.mu.Unlock()
	if pause > 0 {
		return &postponed{"the account may order again later", max(pause, time.Second)}
	}
	return w.keep(ctx, id, after)
}
