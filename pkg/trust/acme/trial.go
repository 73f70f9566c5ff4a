package acme

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// trialPrefix begins the keys of the rows of tests: no host has a colon.
const trialPrefix = "test:"

const (
	// mostTrials bounds the tests at the same time, and mostTrialsBy those of one caller that are not over, so that no
	// caller keeps another one waiting.
	mostTrials   = 8
	mostTrialsBy = 2
	// trialsPerHour is how often a host may be tested in an hour. Let's Encrypt allows five failed validations.
	trialsPerHour = 5
	// trialLag is how long a test waits for Envoys, and trialEnd when it counts as over if nobody ends it.
	trialLag = time.Minute
	trialEnd = 10 * time.Minute
)

// trial is the part of a state that says that its row is a test: an order whose certificate is looked at and thrown away.
type trial struct {
	// By is who asked for it, and Began when the tests of the last hour were asked for; the last one is this.
	By    string      `json:"by,omitempty"`
	Began []time.Time `json:"began"`
	// Ended is zero while it runs. Error and Advice of the state say why it failed.
	Ended time.Time `json:"ended,omitzero"`
	// Issuer and NotAfter are those of the certificate.
	Issuer   string    `json:"issuer,omitempty"`
	NotAfter time.Time `json:"not_after,omitzero"`
}

func (t *trial) began() time.Time {
	if len(t.Began) == 0 {
		return time.Time{}
	}
	return t.Began[len(t.Began)-1]
}

// runs reports whether it is not over.
func (t *trial) runs(now time.Time) bool { return t.Ended.IsZero() && now.Sub(t.began()) < trialEnd }

// Test is a test of whether a certificate could be ordered for a host, for users.
type Test struct {
	// +example=shop.example.com
	Host    string `json:"host"`
	Service string `json:"service"`
	// running, passed, or failed (reason and advice say why).
	// +enum=[running, passed, failed]
	State string `json:"state"`
	// URL of the directory of the authority that was asked.
	Directory string `json:"directory"`
	// How the host is proven: http-01 or dns-01.
	// +enum=[http-01, dns-01]
	Challenge string     `json:"challenge"`
	Began     model.Time `json:"began"`
	// When it was over.
	Ended *model.Time `json:"ended,omitempty"`
	// Common name of the issuer of the certificate, which was thrown away.
	Issuer string `json:"issuer,omitempty"`
	// When that certificate would have ended.
	NotAfter *model.Time `json:"not_after,omitempty"`
	// What the authority said, or what is waited for.
	Reason string `json:"reason,omitempty"`
	// What to do about it.
	Advice string `json:"advice,omitempty"`
}

// TooManyTests says that a test may be asked for later.
type TooManyTests struct {
	Message string
	After   time.Duration
}

// Error implements error.
func (e *TooManyTests) Error() string { return e.Message }

// trialOf returns what a test of a host orders: the same from the directory for tests.
func (w *Watch) trialOf(host string) (wanted, error) {
	for _, want := range w.list {
		switch {
		case want.host != host:
			continue
		case want.problem != "":
			return want, &model.Error{Kind: model.Conflict, Message: "no certificate can be ordered for " + host + ": " + want.problem}
		}
		want.from = want.from.forTests()
		return want, nil
	}
	return wanted{}, &model.Error{
		Kind: model.NotFound, Message: "no service with Certificate=auto has the host " + host, Hint: "GET /certificate lists them",
	}
}

// forTests returns the authority that tests ask. An external account belongs to one directory.
func (a *authority) forTests() *authority {
	config := *a.config
	if config.Directory = a.config.ForTests(); config.URL() != a.config.URL() {
		config.ExternalAccount = nil
	}
	return &authority{name: a.name, config: &config, ca: a.ca, dnsCA: a.dnsCA}
}

// StartTest asks for a test of a host. by is who asks; an empty one is not limited.
func (w *Watch) StartTest(ctx context.Context, host, by string) (Test, error) {
	if err := w.read(ctx); err != nil { // another replica may have begun one
		return Test{}, err
	}
	r, want, err := w.newTrial(strings.ToLower(host), by)
	if err != nil {
		return Test{}, err
	}
	text, err := marshal(r.state)
	if err != nil {
		return Test{}, err
	}
	r.State = text
	if err := w.opts.Store.SaveAutomatic(ctx, "", &r.Automatic); err != nil { // every replica may ask
		return Test{}, err
	}
	return describeTrial(want, r, w.opts.Now()), nil
}

// newTrial returns the row of a new test, if it may begin.
func (w *Watch) newTrial(host, by string) (*row, wanted, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.opts.Now()
	want, err := w.trialOf(host)
	if err != nil {
		return nil, want, err
	}
	t := &trial{By: by}
	r := &row{Automatic: store.Automatic{Host: trialPrefix + host}, state: state{Test: t}}
	if last := w.trials[host]; last != nil {
		if last.state.Test.runs(now) {
			return nil, want, &model.Error{
				Kind: model.Conflict, Message: "a test of " + host + " runs already", Hint: "GET /certificate/" + host + "/test shows it",
			}
		}
		for _, at := range last.state.Test.Began {
			if now.Sub(at) < time.Hour {
				t.Began = append(t.Began, at)
			}
		}
		if len(last.state.Records) > 0 && last.state.Removal.Error == "" {
			return nil, want, &model.Error{
				Kind: model.Conflict, Message: "the record in DNS of the last test of " + host + " is being removed", Hint: "try it again in a minute",
			}
		}
		r.state.Records, r.state.Removal = last.state.Records, last.state.Removal
	}
	if len(t.Began) >= trialsPerHour {
		return nil, want, &TooManyTests{
			fmt.Sprintf("%s was tested %d times in the last hour, which is the most", host, len(t.Began)), t.Began[0].Add(time.Hour).Sub(now),
		}
	}
	mine := 0
	for _, other := range w.trials {
		if by != "" && other.state.Test.By == by && other.state.Test.runs(now) {
			mine++
		}
	}
	if mine >= mostTrialsBy {
		return nil, want, &TooManyTests{fmt.Sprintf("%d tests of yours run already, which is the most", mine), trialLag}
	}
	t.Began = append(t.Began, now)
	return r, want, nil
}

// TestOf returns the last test of a host.
func (w *Watch) TestOf(ctx context.Context, host string) (Test, error) {
	if err := w.read(ctx); err != nil {
		return Test{}, err
	}
	host = strings.ToLower(host)
	w.mu.Lock()
	defer w.mu.Unlock()
	want, err := w.trialOf(host)
	if err != nil {
		return Test{}, err
	}
	r := w.trials[host]
	if r == nil {
		return Test{}, &model.Error{
			Kind: model.NotFound, Message: host + " was not tested yet", Hint: "POST /certificate/" + host + "/test tests it",
		}
	}
	return describeTrial(want, r, w.opts.Now()), nil
}

func describeTrial(want wanted, r *row, now time.Time) Test {
	t := r.state.Test
	d := Test{
		Host: want.host, Service: want.service.Name, State: "running", Directory: want.from.config.URL(), Challenge: want.challenge(),
		Began: model.At(t.began()), Reason: r.state.Waiting, Issuer: t.Issuer,
	}
	if !t.NotAfter.IsZero() {
		d.NotAfter = new(model.At(t.NotAfter))
	}
	switch {
	case t.runs(now):
		return d
	case t.Ended.IsZero():
		d.State, d.Reason, d.Advice = "failed", cmp.Or(r.state.Waiting, "nobody ended it in time"), "test it again"
	case r.state.Error != "":
		d.State, d.Reason, d.Advice, d.Ended = "failed", r.state.Error, r.state.Advice, new(model.At(t.Ended))
	default:
		d.State, d.Reason, d.Ended = "passed", "", new(model.At(t.Ended))
	}
	return d
}

// startTrials starts the tests that were asked for, the oldest first. It requires mu.
func (w *Watch) startTrials(ctx context.Context, group *sync.WaitGroup, now time.Time) (next time.Duration) {
	next = longestLook
	hosts := slices.SortedFunc(maps.Keys(w.trials), func(a, b string) int {
		return w.trials[a].state.Test.began().Compare(w.trials[b].state.Test.began())
	})
	for _, host := range hosts {
		r := w.trials[host]
		stored := w.rows[host]
		// One order at a time answers for a host.
		if w.running[host] || stored != nil && stored.state.Token != "" || !r.state.Test.runs(now) || w.testing >= mostTrials {
			continue
		}
		if r.state.Due.After(now) {
			next = min(next, r.state.Due.Sub(now))
			continue
		}
		want, err := w.trialOf(host)
		if err != nil {
			continue
		}
		w.testing++
		w.running[host] = true
		a := &attempt{watch: w, want: want, row: *r}
		a.row.state.Test = new(*r.state.Test)
		a.row.state.Waiting = ""
		group.Go(func() { w.do(ctx, order, a, &w.testing) })
	}
	return next
}

// discardTrials deletes the tests of hosts that no service has any more. It requires mu.
func (w *Watch) discardTrials(ctx context.Context, group *sync.WaitGroup, now time.Time) {
	hosts := w.set.hosts()
	for host, r := range w.trials {
		if !hosts[host] && !w.running[host] && !r.state.Test.runs(now) && len(r.state.Records) == 0 {
			w.running[host] = true
			group.Go(func() {
				if err := w.opts.Store.DeleteAutomatic(ctx, w.opts.Holder, r.Host); err == nil {
					w.follow(ctx)
				}
				w.mu.Lock()
				delete(w.running, host)
				w.mu.Unlock()
			})
		}
	}
}

// passed ends a test whose certificate is as it should be.
func (a *attempt) passed(ctx context.Context, cert string) error {
	t := a.row.state.Test
	leaf := (&model.Secret{Cert: cert}).Leaf()
	t.Issuer, t.NotAfter = plain(leaf.Issuer.CommonName), leaf.NotAfter
	a.end("", "")
	a.watch.count("test_passed")
	return a.watch.save(ctx, &a.row)
}

// end makes a state one of a test that is over.
func (a *attempt) end(reason, advice string) {
	s := &a.row.state
	s.Test.Ended, s.Error, s.Advice = a.watch.opts.Now(), reason, advice
	s.Order, s.Account, s.Token, s.Answer, s.Waiting, a.row.OrderKey = "", "", "", "", "", ""
	a.watch.tested(a.want, reason)
}

// tested tells of the end of a test.
func (w *Watch) tested(want wanted, reason string) {
	result := "passed"
	if reason != "" {
		result = "failed: " + reason
	}
	w.opts.Log.Info("test of an order ended", "host", want.host, "directory", want.from.config.URL(), "result", result)
	w.opts.Status.RecordCertificate(model.Condition{
		Key: want.service.Key(), Code: model.CertificateTested,
		Message: fmt.Sprintf("the test of %s at %s %s", want.host, want.from.config.URL(), result),
	})
}

// trialFailed ends a test, or lets it wait for Envoys.
func (w *Watch) trialFailed(a *attempt, wait *postponed, err error) {
	s := &a.row.state
	if wait != nil && w.opts.Now().Sub(s.Test.began()) < trialLag {
		s.Waiting, s.Due = wait.why, w.opts.Now().Add(wait.pause)
		return
	}
	if wait != nil {
		a.end(wait.why, "connect the Envoys of all proxies of the service, or wait until they have what is configured (GET /status)")
	} else {
		a.end(a.explain(err))
	}
	w.count("test_failed")
}

// challenged returns what the build loop gets of a host while a test of it runs, beside what it has otherwise.
func (w *Watch) challenged(host string, served *model.Automatic) *model.Automatic {
	r := w.trials[host]
	if r == nil || r.served.Challenge == nil || served.Challenge != nil || !r.state.Test.runs(w.opts.Now()) {
		return served
	}
	both := *served
	both.Challenge = r.served.Challenge
	return &both
}
