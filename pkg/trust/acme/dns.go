package acme

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// mostProofs bounds the attempts with a hook at the same time: they have slots of their own, so that a slow hook keeps
	// no host waiting that is proven otherwise.
	mostProofs = 16
	// mostRecords bounds the records of a host that are still to be removed.
	mostRecords = 8
	// removeAfter is how long after it was written a record is removed at the latest, if nobody does it before: its attempt
	// was another process's. The pauses between calls that fail grow to lastRetry.
	removeAfter = attemptTimeout
	// mostRemoves is how often a hook is asked to remove a record.
	mostRemoves = 10
)

// txtRecord is a TXT record that a hook has written, or may have written.
type txtRecord struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// removal is what is still to be removed, and when to try it. Error is what the hook said last.
type removal struct {
	At       time.Time `json:"at,omitzero"`
	Failures int       `json:"failures,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// hookError is why a hook did not do it, in its own words.
type hookError struct{ text, advice string }

// Error implements error.
func (e *hookError) Error() string { return e.text }

// byDNS reports whether the host is proven by a record in DNS.
func (w wanted) byDNS() bool { return w.service.ProvesByDNS() }

// challenge is how the host is proven.
func (w wanted) challenge() string {
	if w.byDNS() {
		return protocol.ChallengeTypeDNS01
	}
	return protocol.ChallengeTypeHTTP01
}

// bound is how long an attempt may take.
func (w wanted) bound() time.Duration {
	if w.byDNS() && w.from.config.DNS != nil {
		return attemptTimeout + w.from.config.DNS.CallTime() + w.from.config.DNS.PropagationTime()
	}
	return attemptTimeout
}

// noHook says why no record can be written for a host that is proven by one; empty means that it can.
func (a *authority) noHook(program string) string {
	switch {
	case a.config.DNS == nil:
		return fmt.Sprintf("it is proven by a record in DNS, and globalconfig %s has no dns: say there what writes records", a.name)
	case a.config.DNS.Hook == model.HookExec && program == "":
		return fmt.Sprintf("globalconfig %s has the dns hook %s, and the program was started without --acme-dns-exec", a.name, model.HookExec)
	case a.config.DNS.CACertificate != "" && a.dnsCA == nil:
		return fmt.Sprintf("globalconfig %s names the secret %s in dns, which has no certificate", a.name, a.config.DNS.CACertificate)
	}
	return ""
}

// noHook says why no record can be written for a host that needs one; empty means that it can, or needs none.
func (w wanted) noHook(program string) string {
	if !w.byDNS() {
		return ""
	}
	return w.from.noHook(program)
}

// publish lets a hook write the record of a challenge, and waits until it can be seen. The record is stored before it is
// written, so that whoever continues removes it.
func (a *attempt) publish(ctx context.Context, challenge protocol.Challenge) error {
	r := txtRecord{Name: challenge.DNS01TXTRecordName(), Value: challenge.DNS01KeyAuthorization()}
	s := &a.row.state
	if !slices.Contains(s.Records, r) {
		s.Records = append(slices.Clone(s.Records), r) // rows that are known share them
		s.Records = s.Records[max(0, len(s.Records)-mostRecords):]
	}
	s.Removal = removal{At: a.watch.opts.Now().Add(a.want.bound() + removeAfter)}
	if err := a.watch.save(ctx, &a.row); err != nil {
		return err
	}
	if err := a.watch.callHook(ctx, a.want.from, hookCall{present, a.want.host, r}); err != nil {
		return err
	}
	return a.watch.seen(ctx, a.want.from.config.DNS, r)
}

// remove lets the hook remove the records of an attempt that is over, and stores what is left.
func (w *Watch) remove(ctx context.Context, want wanted, r *row) {
	s := &r.state
	var failed error
	var left []txtRecord
	for _, record := range s.Records {
		var err error = &hookError{text: "no globalconfig has a dns hook any more"}
		if want.from != nil {
			err = w.callHook(ctx, want.from, hookCall{cleanup, want.host, record})
		}
		if ctx.Err() != nil {
			return // who continues does it
		}
		if err != nil {
			failed, left = err, append(left, record)
		}
	}
	if s.Records = left; failed == nil {
		s.Removal = removal{}
	} else {
		w.notRemoved(want, s, failed)
	}
	if err := w.save(ctx, r); err != nil && ctx.Err() == nil && !model.IsKind(err, model.Conflict) {
		w.opts.Log.Warn("state of an order not stored", "host", want.host, "err", err)
	}
}

// notRemoved says what a hook left behind, and when it is asked again.
func (w *Watch) notRemoved(want wanted, s *state, err error) {
	text, _ := explain(err, want.host)
	s.Removal.Failures++
	s.Removal.Error = text
	s.Removal.At = w.opts.Now().Add(min(firstRetry<<(2*min(s.Removal.Failures-1, 8)), lastRetry))
	level := w.opts.Log.Warn
	if s.Removal.Failures >= mostRemoves {
		level, s.Records = w.opts.Log.Error, nil
	}
	level("record in DNS not removed", "host", want.host, "record", recordName(want.host), "reason", text, "failures", s.Removal.Failures)
}

func recordName(host string) string { return "_acme-challenge." + strings.TrimPrefix(host, "*.") }

// startRemovals starts what removes records whose attempt is over, in all rows. It requires mu.
func (w *Watch) startRemovals(ctx context.Context, group *sync.WaitGroup, now time.Time) (next time.Duration) {
	next = longestLook
	for _, rows := range []map[string]*row{w.rows, w.trials} {
		for host, r := range rows {
			if len(r.state.Records) == 0 || w.running[host] {
				continue
			}
			if r.state.Removal.At.After(now) {
				next = min(next, r.state.Removal.At.Sub(now))
				continue
			}
			if w.removing >= mostProofs {
				continue
			}
			want := w.removalOf(host)
			w.removing++
			w.running[host] = true
			mine := *r
			group.Go(func() {
				w.remove(ctx, want, &mine)
				w.mu.Lock()
				w.removing--
				delete(w.running, host)
				w.mu.Unlock()
				signal(w.wake)
			})
		}
	}
	return next
}

// removalOf returns with what the records of a host are removed: the hook of its authority, or of the first authority with
// one if no service has the host any more; without an authority if none has one. It requires mu.
func (w *Watch) removalOf(host string) wanted {
	for _, want := range w.list {
		if want.host == host && want.from != nil && want.from.noHook(w.opts.DNSExec) == "" {
			return want
		}
	}
	return wanted{host: host, from: w.set.firstHook(w.opts.DNSExec)}
}

// dnsAdvice says what to do about a problem of an authority with a record.
func dnsAdvice(kind, host string) string {
	switch strings.TrimPrefix(kind, protocol.ProblemTypeNamespace) {
	case "dns", "unauthorized", "incorrectResponse", "connection":
		return fmt.Sprintf("the authority does not see the TXT record %s that the hook wrote: check that the hook writes into the zone "+
			"that public DNS serves, or give it more time (dns.propagation and dns.resolvers)", recordName(host))
	}
	return ""
}

// explain returns what the attempt failed with, and what to do.
func (a *attempt) explain(err error) (text, advice string) {
	text, advice = explain(err, a.want.host)
	if problem, is := errors.AsType[protocol.Problem](err); is && a.want.byDNS() {
		advice = cmp.Or(dnsAdvice(problem.Type, a.want.host), advice)
	}
	return text, advice
}
