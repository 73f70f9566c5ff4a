package acme

import (
	"context"
	"errors"
	"sync"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const (
	// leaseTime is how long the lease lasts if its holder dies, and leaseEvery how often it is renewed.
	leaseTime  = 10 * time.Second
	leaseEvery = 3 * time.Second
	// longestLook bounds how long the clock is trusted to run evenly, and for how long a lost notification stays unnoticed.
	longestLook = 30 * time.Second
	// unusedFor is how long a certificate is kept that no service needs: this replica may not have read the service yet.
	unusedFor = time.Minute
	// lastWrite bounds what is written when the program ends.
	lastWrite = 2 * time.Second
)

// Run orders certificates while this process holds the lease, and passes on what changes, until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { w.lead(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(w.startDue(&group))
		select {
		case <-ctx.Done():
			group.Wait()
			return nil
		case <-w.opts.Source.Changed():
			signal(w.changed)
		case <-w.opts.Store.AutomaticChanged():
			w.follow(ctx)
		case <-w.wake:
		case <-timer.C:
			if w.used() {
				w.follow(ctx)
			}
		}
	}
}

// used reports whether there is anything to do at all.
func (w *Watch) used() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.list)+len(w.rows) > 0
}

// lead holds the lease while it can, if there is anything to order.
func (w *Watch) lead(ctx context.Context) {
	var end context.CancelFunc
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	var until time.Time
	for {
		now := time.Now()
		held := false
		if w.used() {
			asking, cancel := context.WithTimeout(ctx, leaseEvery)
			var err error
			held, err = w.opts.Store.HoldLease(asking, w.opts.Holder, leaseTime)
			cancel()
			if err != nil && ctx.Err() == nil {
				w.opts.Log.Warn("lease for orders of certificates not renewed", "err", err)
				held = now.Before(until) && end != nil // it may still be ours; each write checks that
			} else if held {
				until = now.Add(leaseTime)
			}
			if held && end == nil {
				held = w.recall(ctx)
			}
		}
		switch {
		case held && end == nil:
			var leading context.Context
			leading, end = context.WithCancel(ctx)
			w.mu.Lock()
			w.leads = leading
			w.mu.Unlock()
			signal(w.wake)
		case !held && end != nil:
			end()
			end = nil
		}
		select {
		case <-tick.C:
		case <-w.begin:
		case <-ctx.Done():
			if end != nil {
				end()
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
				_, _ = w.opts.Store.HoldLease(last, w.opts.Holder, 0) // otherwise it ends by itself
				cancel()
			}
			return
		}
	}
}

// startDue starts the attempts that are due, and returns the time until the next call.
func (w *Watch) startDue(group *sync.WaitGroup) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	later := longestLook
	if w.leads == nil || w.leads.Err() != nil {
		return later
	}
	now, ctx := w.opts.Now(), w.leads
	w.discardUnused(ctx, group, now)
	w.discardTrials(ctx, group, now)
	later = min(later, w.startTrials(ctx, group, now), w.startRemovals(ctx, group, now))
	for _, want := range w.list {
		key := want.host
		if w.running[key] {
			continue // its end wakes Run
		}
		stored := w.rows[key]
		do, at := next(want, stored, now)
		if do == order {
			if until, what := w.heldUntil(want, now); until.After(now) && (stored == nil || stored.Asked == stored.state.Asked) {
				if do, at = wait, until; what != "" && (stored == nil || stored.state.Waiting == "") {
					do = hold // users see why
				}
			}
		}
		slots, most := w.slotsOf(want, stored != nil && stored.state.Failures > 0)
		switch {
		case do == wait && !at.IsZero():
			later = min(later, max(at.Sub(now), time.Millisecond))
		case do != wait && *slots < most:
			*slots++
			w.running[key] = true
			a := &attempt{watch: w, want: want, row: row{Automatic: store.Automatic{Host: key}}}
			if stored != nil {
				a.row, a.asked = *stored, stored.Asked
			}
			a.row.state.Renew = a.row.state.Renew || a.asked > a.row.state.Asked
			a.row.state.Asked, a.row.state.Waiting = a.asked, ""
			group.Go(func() { w.do(ctx, do, a, slots) })
		}
	}
	return later
}

// slotsOf returns the count of the attempts that share a bound, and the bound. Those with a hook share none with others.
func (w *Watch) slotsOf(want wanted, failed bool) (slots *int, most int) {
	switch {
	case want.byDNS() && failed:
		return &w.reproving, mostFailing
	case want.byDNS():
		return &w.proving, mostProofs
	case failed:
		return &w.failing, mostFailing
	}
	return &w.orders, mostOrders
}

// discardUnused deletes what no service needs: those that are deleted, or have another host. It requires mu.
func (w *Watch) discardUnused(ctx context.Context, group *sync.WaitGroup, now time.Time) {
	hosts := w.set.hosts()
	for key := range w.rows {
		if hosts[key] {
			delete(w.unused, key)
			continue
		}
		if w.unused[key].IsZero() {
			w.unused[key] = now
		}
		if w.running[key] || len(w.rows[key].state.Records) > 0 || now.Sub(w.unused[key]) < unusedFor {
			continue
		}
		delete(w.unused, key)
		w.running[key] = true
		group.Go(func() {
			err := w.opts.Store.DeleteAutomatic(ctx, w.opts.Holder, key)
			if err != nil && ctx.Err() == nil {
				w.opts.Log.Warn("unused certificate not deleted, trying again", "host", key, "err", err)
			} else if err == nil {
				w.opts.Log.Info("certificate deleted: no service needs it", "host", key)
				w.follow(ctx)
			}
			w.mu.Lock()
			delete(w.running, key)
			w.mu.Unlock()
			if err == nil {
				signal(w.wake)
			}
		})
	}
}

// do does what is due, and then frees its slot. An attempt that takes long frees it before: the hosts after it do not wait
// for an authority that does not get an answer from this one.
func (w *Watch) do(ctx context.Context, what action, a *attempt, slots *int) {
	bound, cancel := context.WithTimeout(ctx, a.want.bound())
	defer cancel()
	ended := false
	apart := a.want.byDNS() || a.row.state.Test != nil // their slots are not those of orders
	aside := time.AfterFunc(w.slowAfter, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !ended && !apart && w.slow < mostSlow {
			*slots--
			w.slow++
			slots = &w.slow
			signal(w.wake)
		}
	})
	defer aside.Stop()
	var later time.Duration
	bound = context.WithValue(bound, laterKey{}, &later)
	var err error
	switch what {
	case placeholder:
		a.row.Cert, a.row.Key, err = selfSigned(a.want.host, w.opts.Now())
		if a.row.state.Placeholder = true; err == nil {
			err = w.save(bound, &a.row)
		}
	case inform:
		err = a.inform(bound)
	case hold:
		err = w.postpone(a.want)
	default:
		err = a.run(bound)
	}
	if err != nil && ctx.Err() == nil {
		w.failed(ctx, a, err, later)
	}
	if len(a.row.state.Records) > 0 && ctx.Err() == nil && !model.IsKind(err, model.Conflict) {
		w.mu.Lock()
		want := w.removalOf(a.want.host)
		w.mu.Unlock()
		w.remove(ctx, want, &a.row)
	}
	w.mu.Lock()
	ended = true
	*slots--
	delete(w.running, a.want.host)
	w.mu.Unlock()
	signal(w.wake)
}

// failed stores why an attempt ended, and when the next one begins.
func (w *Watch) failed(ctx context.Context, a *attempt, err error, later time.Duration) {
	now, s := w.opts.Now(), &a.row.state
	var wait *postponed
	switch {
	case model.IsKind(err, model.Conflict): // another replica orders
		return
	case s.Test != nil:
		errors.As(err, &wait)
		a.forgetUnknown(ctx, err)
		w.trialFailed(a, wait, err)
	case errors.As(err, &wait):
		s.Waiting, s.Due = wait.why, now.Add(wait.pause)
	default:
		a.forgetUnknown(ctx, err)
		s.Failures++
		s.Error, s.Advice = a.explain(err)
		s.FailedAt, s.Waiting, s.Token, s.Answer = now, "", "", ""
		s.Due = a.row.retry(now, s.Failures, later)
		if isProblem(err, protocol.ProblemTypeRateLimited) {
			w.hold(ctx, a, s, max(later, time.Hour), now)
		}
		w.count("failed")
		w.opts.Log.Warn("certificate not issued", "host", a.want.host, "reason", s.Error,
			"advice", s.Advice, "failures", s.Failures, "next", s.Due)
	}
	if err := w.save(ctx, &a.row); err != nil && ctx.Err() == nil && !model.IsKind(err, model.Conflict) {
		w.opts.Log.Warn("state of an order not stored", "host", a.want.host, "err", err)
		w.pause(a)
	}
}

// forgetUnknown makes the next attempt register the account again if the authority does not know it.
func (a *attempt) forgetUnknown(ctx context.Context, err error) {
	if !isProblem(err, protocol.ProblemTypeAccountDoesNotExist) {
		return
	}
	if c, clientErr := a.watch.clientOf(a.want.from); clientErr == nil {
		_ = c.forget(ctx, a.watch, a.want.from) // the next attempt finds out again
	}
	a.row.state.Order = ""
}

func isProblem(err error, kind string) bool {
	var problem protocol.Problem
	return errors.As(err, &problem) && problem.Type == kind
}
