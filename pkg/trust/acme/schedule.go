package acme

import (
	"time"
)

// action is what to do with a certificate.
type action int

const (
	wait action = iota
	// placeholder: sign one that is shown until there is another.
	placeholder
	// order: begin or continue an order.
	order
	// inform: ask the authority when to renew (ARI, RFC 9773).
	inform
	// hold: say that the authority does not allow an order yet.
	hold
)

const (
	// firstRetry is the time from a first failure to the next attempt; it grows four times with each failure up to
	// lastRetry. Let's Encrypt allows five failed validations of a host in an hour.
	firstRetry = time.Minute
	lastRetry  = 24 * time.Hour
	// longestHold bounds how long an authority may make us wait.
	longestHold = 8 * 24 * time.Hour
	// infoEvery is the time between questions when to renew, if the authority does not say.
	infoEvery = 6 * time.Hour
)

// next returns what to do with a certificate, and when to look again; r is nil before anything is stored. It does not
// look at the number of attempts that run.
func next(w wanted, r *row, now time.Time) (action, time.Time) {
	never := time.Time{}
	if w.byHand || w.problem != "" {
		return wait, never
	}
	if r == nil {
		if w.from.config.Placeholder {
			return placeholder, now
		}
		return order, now
	}
	if r.Cert == "" && w.from.config.Placeholder {
		return placeholder, now
	}
	due := r.orderAt(w)
	if r.state.Due.After(due) && r.Asked == r.state.Asked {
		due = r.state.Due
	}
	if !due.After(now) {
		return order, due
	}
	if info := r.state.InfoAt; r.certificate != nil && r.state.Failures == 0 {
		if !info.After(now) {
			return inform, now
		}
		if info.Before(due) {
			return wait, info
		}
	}
	return wait, due
}

// orderAt returns when a new certificate is needed, or its order to be continued; the zero time means now.
func (r *row) orderAt(w wanted) time.Time {
	if r.certificate == nil || r.state.Order != "" || r.state.Renew || r.Asked > r.state.Asked || r.state.Directory != w.from.config.URL() {
		return time.Time{}
	}
	at := r.certificate.renewAt()
	if r.state.RenewAt.IsZero() {
		return at
	}
	// An authority that wants it later than it ends is wrong.
	if last := r.certificate.notAfter.Add(-r.certificate.life() / 10); r.state.RenewAt.After(last) {
		return last
	}
	return r.state.RenewAt
}

func (c *certificate) life() time.Duration { return c.notAfter.Sub(c.notBefore) }

// renewAt is two thirds of the life.
func (c *certificate) renewAt() time.Time { return c.notBefore.Add(c.life() / 3 * 2) }

// replaced returns the state after a new certificate. One that is due again as soon as it is issued, because of the clock
// here or of what the authority suggests, is renewed once, and then like one that fails: later each time.
func (r *row) replaced(by *certificate, directory string, now time.Time, asked int64) state {
	s := state{Directory: directory, IssuedAt: now, Asked: asked}
	soon := by.life() / 10
	if at := r.state.IssuedAt; !at.IsZero() && !r.state.Renew && r.state.Directory == directory && now.Sub(at).Abs() < min(soon, lastRetry) {
		s.Early = r.state.Early + 1
		s.Due = now.Add(min(pauseAfter(s.Early), max(by.notAfter.Sub(now)/4, min(soon, firstRetry)))) // before it ends
	}
	return s
}

// pauseAfter is the pause after a number of failures in a row.
func pauseAfter(failures int) time.Duration {
	if failures < 8 {
		return min(lastRetry, firstRetry<<(2*(failures-1)))
	}
	return lastRetry
}

// retry returns when to try again after a number of failures in a row. later is what the authority said; 0 means nothing.
func (r *row) retry(now time.Time, failures int, later time.Duration) time.Time {
	pause := pauseAfter(failures)
	if r.certificate != nil { // more attempts before it ends
		pause = min(pause, max(r.certificate.notAfter.Sub(now)/4, firstRetry))
	}
	return now.Add(max(pause, min(later, longestHold)))
}
