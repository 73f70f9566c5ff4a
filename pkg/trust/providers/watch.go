package providers

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
)

// mostAsked bounds the providers that requests are sent to at the same time, and mostFailing those whose last attempt
// failed, in addition: they may take long, and must not keep the others waiting.
const (
	mostAsked   = 8
	mostFailing = 4
)

// Times are the intervals of a Watch. The value of a zero field is in its comment.
type Times struct {
	// Every is the time from a valid answer to the next request, if the provider does not
	// say how long its answer is valid (5 m). A time that it states is limited to the range
	// from Least (1 m) to Most (1 h).
	Every, Least, Most time.Duration
	// FirstRetry (1 s) is the time from a failure to the next request; it doubles up to
	// LastRetry (1 m).
	FirstRetry, LastRetry time.Duration
	// Apart (10 s) is the least time between requests that Refresh causes.
	Apart time.Duration
	// Note (1 m) is the least time between writes of the note.
	Note time.Duration
}

func (t Times) orDefault() Times {
	for _, f := range []struct {
		at *time.Duration
		or time.Duration
	}{
		{&t.Every, 5 * time.Minute}, {&t.Least, time.Minute}, {&t.Most, time.Hour}, {&t.FirstRetry, time.Second},
		{&t.LastRetry, time.Minute}, {&t.Apart, 10 * time.Second}, {&t.Note, time.Minute},
	} {
		if *f.at == 0 {
			*f.at = f.or
		}
	}
	return t
}

// Options of a Watch; all except Times are required.
type Options struct {
	// Source is where the configuration comes from.
	Source store.Source
	// Ask sends requests to a provider, as oidc.Client does.
	Ask    func(ctx context.Context, source model.ProviderSource, via *oidc.Via) (oidc.Answer, error)
	Notes  store.Notes
	Status *status.Registry
	Log    *slog.Logger
	Times  Times
}

// Watch is a source of the build loop whose changes include what is learned from providers.
// Use New.
type Watch struct {
	opts    Options
	changed chan struct{} // capacity 1: signals the build loop
	wake    chan struct{} // capacity 1: signals Run

	mu      sync.Mutex
	set     *set
	sources map[model.ProviderSource]*provider
	// told is what the build loop last received.
	told map[model.Key]model.Providers
	// asking and askingFailing are the numbers of providers with a request in progress; see mostAsked.
	asking, askingFailing int
	notes                 notes
}

// provider is one provider. Watch.mu protects its fields.
type provider struct {
	source model.ProviderSource
	via    *oidc.Via
	users  []model.Key
	// known is what is reported of it; nil before the end of the first attempt.
	known *model.Provider
	// answered is the time of the last valid answer; zero if there was none.
	answered time.Time
	// failed is since when attempts have failed, failures how many failed in a row, and
	// total how many ever did.
	failed          time.Time
	failures, total int
	// asked is the time of the last request, due that of the next; asking says that one is
	// in progress.
	asked, due time.Time
	asking     bool
	// again says that Refresh was called while a request was in progress.
	again bool
	// way counts the ways in which it was reached. settled is closed at the end of an
	// attempt that used the last one.
	way     int
	settled chan struct{}
}

// settle releases those that wait for the first answer.
func (p *provider) settle() {
	if !isClosed(p.settled) {
		close(p.settled)
	}
}

// New returns a watch that knows nothing yet.
func New(opts Options) *Watch {
	opts.Times = opts.Times.orDefault()
	return &Watch{
		opts: opts, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		set: newSet(), sources: map[model.ProviderSource]*provider{}, told: map[model.Key]model.Providers{},
	}
}

// Changed implements store.Source.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Since implements store.Source. It sends no request to a provider.
func (w *Watch) Since(ctx context.Context, at model.Mark) (model.Change, error) {
	change, err := w.opts.Source.Since(ctx, at)
	if err != nil {
		return change, err
	}
	w.readNote(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if change.Full || len(change.Entries) > 0 {
		w.set.apply(change)
		w.follow(time.Now())
	}
	change.Learned = w.learned(change.Full)
	return change, nil
}

// follow sets the sources to those that are wanted. It requires mu.
func (w *Watch) follow(now time.Time) {
	wanted := w.set.wanted()
	for source, p := range w.sources {
		if wanted[source] == nil {
			p.settle()
			delete(w.sources, source)
		}
	}
	for source, users := range wanted {
		p, via := w.sources[source], w.set.via(source)
		switch {
		case p == nil:
			p = &provider{source: source, due: now, settled: make(chan struct{})}
			w.notes.recall(p)
			w.sources[source] = p
		case !sameVia(p.via, via):
			p.due = now
			p.way++
			if isClosed(p.settled) {
				p.settled = make(chan struct{})
			}
		}
		p.via, p.users = via, users
	}
	w.tell()
	signal(w.wake)
}

// learned returns what the build loop does not have yet; everything for a full change. It
// requires mu.
func (w *Watch) learned(full bool) map[model.Key]model.Providers {
	if len(w.sources) == 0 && len(w.told) == 0 {
		return nil
	}
	news := map[model.Key]model.Providers{}
	known := map[model.Key]model.Providers{}
	for key, sources := range w.set.logins {
		var all model.Providers
		for _, source := range sources {
			if p := w.sources[source]; p != nil && p.known != nil && w.set.isInUse(key) {
				all = append(all, p.known)
			}
		}
		if len(all) == 0 {
			continue
		}
		known[key] = all
		if full || !slices.Equal(w.told[key], all) {
			news[key] = all
		}
	}
	for key := range w.told {
		if known[key] == nil {
			news[key] = nil
		}
	}
	w.told = known
	return news
}

// Run sends requests to the providers until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(w.startDue(ctx, &group))
		select {
		case <-ctx.Done():
			group.Wait()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastNote)
			defer cancel()
			w.writeNote(last)
			return nil
		case <-w.opts.Source.Changed():
			signal(w.changed)
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// startDue starts the requests that are due, and returns the time until the next call.
func (w *Watch) startDue(ctx context.Context, group *sync.WaitGroup) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, later := time.Now(), time.Hour
	for _, p := range w.inOrder() {
		slots, most := &w.asking, mostAsked
		if p.failures > 0 {
			slots, most = &w.askingFailing, mostFailing
		}
		switch wait := p.due.Sub(now); {
		case p.asking || wait <= 0 && *slots == most: // the end of an attempt wakes Run
		case wait > 0:
			later = min(later, wait)
		default:
			p.asking, p.asked = true, now
			*slots++
			via, way := p.via, p.way
			group.Go(func() { w.ask(ctx, p, via, way, slots) })
		}
	}
	if wait, ok := w.notes.retry(now, w.opts.Times.FirstRetry); ok && len(w.sources) > 0 {
		if later = min(later, max(wait, time.Millisecond)); wait <= 0 {
			w.notes.reading = true
			group.Go(func() { w.readNoteAgain(ctx) })
		}
	}
	if wait, ok := w.notes.wait(now, w.opts.Times.Note); ok && wait > 0 {
		later = min(later, wait)
	} else if ok {
		group.Go(func() { w.writeNote(ctx) })
		later = min(later, w.opts.Times.Note)
	}
	return later
}

// inOrder returns the providers: those that are due for the longest time first. It requires mu.
func (w *Watch) inOrder() []*provider {
	return slices.SortedFunc(maps.Values(w.sources), func(a, b *provider) int { return a.due.Compare(b.due) })
}

// ask sends a request to a provider, and then frees its slot.
func (w *Watch) ask(ctx context.Context, p *provider, via *oidc.Via, way int, slots *int) {
	answer, err := w.opts.Ask(ctx, p.source, via)
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	defer signal(w.wake)
	*slots--
	p.asking = false
	if ctx.Err() != nil || w.sources[p.source] != p {
		return // no login needs it anymore
	}
	before := p.known
	next := now.Add(w.note(p, answer, err, now))
	if soon := p.asked.Add(w.opts.Times.Apart); p.again && soon.Before(next) {
		next = soon
	}
	p.again = false
	if p.way == way { // otherwise it is now reached in another way, and due
		p.due = next
		p.settle()
	}
	if p.known != before {
		signal(w.changed)
	}
	w.tell()
}

// note records the result of an attempt, and returns the time until the next one. It
// requires mu.
func (w *Watch) note(p *provider, a oidc.Answer, err error, now time.Time) time.Duration {
	t := w.opts.Times
	known := model.Provider{Source: p.source}
	if p.known != nil {
		known = *p.known
	}
	if err != nil {
		p.total++
		p.failures++
		if p.failures == 1 {
			p.failed = now
		}
		known.Fault = err.Error()
		w.replace(p, known)
		return jitter(min(t.FirstRetry<<min(p.failures-1, 30), t.LastRetry))
	}
	p.failures, p.failed, p.answered = 0, time.Time{}, now
	known = a.Provider
	known.Source, known.Fault = p.source, ""
	w.replace(p, known)
	if a.MaxAge == 0 {
		return jitter(t.Every)
	}
	return jitter(max(t.Least, min(a.MaxAge, t.Most)))
}

// replace sets what is known, if it differs. It requires mu.
func (w *Watch) replace(p *provider, known model.Provider) {
	if p.known != nil && *p.known == known {
		return
	}
	w.announce(p, known)
	if known.JWKS != "" && (p.known == nil || !sameButFault(*p.known, known)) {
		w.notes.dirty = true
	}
	p.known = &known
}

func sameButFault(a, b model.Provider) bool {
	a.Fault, b.Fault = "", ""
	return a == b
}

// Refresh sends a request to the provider of a login, or of tokens, soon: for example when a
// token is signed with an unknown key. Calls that are close together cause one request.
func (w *Watch) Refresh(key model.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.sources {
		for _, user := range p.users {
			if user != key {
				continue
			}
			p.again = p.asking
			if soon := p.asked.Add(w.opts.Times.Apart); soon.Before(p.due) {
				p.due = soon
				signal(w.wake)
			}
		}
	}
}

// Settle waits until the providers that some objects concern have been tried once, with
// success or not, or until ctx ends. It reports whether there are any.
func (w *Watch) Settle(ctx context.Context, changed []model.Key) bool {
	waits := w.unsettled(changed)
	for _, settled := range waits {
		select {
		case <-settled:
		case <-ctx.Done():
		}
	}
	return len(waits) > 0
}

func (w *Watch) unsettled(changed []model.Key) (list []chan struct{}) {
	about := map[model.Key]bool{}
	for _, key := range changed {
		about[key] = true
		about[key.Attached()] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.sources {
		if p.isAbout(about) {
			list = append(list, p.settled)
		}
	}
	return list
}

func (p *provider) isAbout(keys map[model.Key]bool) bool {
	for _, key := range p.users {
		if keys[key] {
			return true
		}
	}
	if p.via == nil {
		return false
	}
	for name := range p.via.Secrets {
		if keys[model.SecretKey(name)] {
			return true
		}
	}
	return keys[p.via.Upstream.Key()]
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// jitter returns d minus up to a tenth, so that what began at the same time spreads out.
func jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/10+1)) //nolint:gosec // nothing secret
}
