package acme

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// mostOrders bounds the attempts at the same time, and mostFailing those of certificates whose last attempt failed, in
// addition: they may take long, and must not keep the others waiting.
const (
	mostOrders  = 8
	mostFailing = 4
	// slowAfter is the time after which an attempt does not count as one of these any more, and mostSlow bounds those.
	slowAfter = 10 * time.Second
	mostSlow  = 64
)

// Options of a Watch. All are required, except that Authorities and DNSExec may be empty.
type Options struct {
	// Source is where the configuration comes from.
	Source store.Source
	Store  store.AutomaticCertificates
	Status *status.Registry
	Log    *slog.Logger
	Now    func() time.Time
	// Holder is the name of this process, which no other has.
	Holder string
	// Dial connects to authorities.
	Dial Dial
	// Authorities verify them, in PEM.
	Authorities string
	// DNSExec is the program that writes records into DNS; empty means none.
	DNSExec string
}

// Watch is a source of the build loop whose changes include automatic certificates, and what authorities ask for. Use New.
type Watch struct {
	opts    Options
	changed chan struct{} // capacity 1: signals the build loop
	wake    chan struct{} // capacity 1: signals Run
	begin   chan struct{} // capacity 1: signals lead that there is something to order

	reading sync.Mutex // one read at a time, so that versions do not go back

	mu       sync.Mutex
	set      *set
	list     []wanted // set.wanted
	revision int64
	version  int64
	rows     map[string]*row
	trials   map[string]*row // tests, by host
	// told is what the build loop has.
	told    map[model.Key]*model.Automatic
	clients map[string]*client
	// applied is how to wait for Envoys; see WaitWith.
	applied func(ctx context.Context, revision int64, changed []model.Key) []status.Lag
	// running are the hosts with an attempt; orders, failing and slow count them. holds is as in hold.go.
	running               map[string]bool
	orders, failing, slow int
	holds                 map[string]time.Time
	slowAfter             time.Duration
	// testing, proving, reproving and removing count tests, attempts with a hook for DNS, those of them that failed last,
	// and removals of records.
	testing, proving, reproving, removing int
	// unused are hosts that no service has any more, with the time when that was first seen.
	unused map[string]time.Time
	// leads is the context of attempts while this process holds the lease; nil otherwise.
	leads context.Context //nolint:containedctx // it ends with the lease, which outlives each call
	// lastTold are the messages of the last failures that were told.
	lastTold map[model.Key]string
	// counts are attempts by their result.
	counts map[string]int
}

// New returns a watch that knows nothing yet.
func New(opts Options) *Watch {
	return &Watch{
		opts: opts, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1), begin: make(chan struct{}, 1), set: newSet(), rows: map[string]*row{}, trials: map[string]*row{},
		told: map[model.Key]*model.Automatic{}, clients: map[string]*client{}, running: map[string]bool{}, holds: map[string]time.Time{}, unused: map[string]time.Time{},
		counts:    map[string]int{"issued": 0, "failed": 0, "test_passed": 0, "test_failed": 0, "hook_done": 0, "hook_failed": 0},
		slowAfter: slowAfter,
	}
}

// WaitWith sets how to wait until the Envoys of all replicas have what changed. It is called before Run.
func (w *Watch) WaitWith(wait func(ctx context.Context, revision int64, changed []model.Key) []status.Lag) {
	w.applied = wait
}

func (w *Watch) wait(ctx context.Context, changed []model.Key) []status.Lag {
	w.mu.Lock()
	revision := w.revision
	w.mu.Unlock()
	return w.applied(ctx, revision, changed)
}

// Changed implements store.Source.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Since implements store.Source. It asks no authority.
func (w *Watch) Since(ctx context.Context, at model.Mark) (model.Change, error) {
	change, err := w.opts.Source.Since(ctx, at)
	if err != nil {
		return change, err
	}
	w.mu.Lock()
	w.revision = change.Revision
	different := w.set.apply(change)
	if different {
		w.list = w.set.wanted(w.opts.DNSExec)
	}
	if change.Restored {
		w.version = 0
	}
	used := len(w.list)+len(w.rows) > 0 || change.Full // what is no longer wanted is discarded
	w.mu.Unlock()
	if used {
		if err := w.read(ctx); err != nil {
			return model.Change{}, err
		}
	}
	w.mu.Lock()
	change.Automatic = w.news(change.Full)
	w.mu.Unlock()
	if different && used {
		w.tell()
		signal(w.wake)
		signal(w.begin)
	}
	return change, nil
}

// news returns what the build loop does not have yet; everything for a full change. It requires mu.
func (w *Watch) news(full bool) map[model.Key]*model.Automatic {
	if len(w.list) == 0 && len(w.told) == 0 {
		return nil
	}
	news, known := map[model.Key]*model.Automatic{}, map[model.Key]*model.Automatic{}
	for _, want := range w.list {
		key := want.service.Key()
		known[key] = w.tells(want)
		if full || !equal(known[key], w.told[key]) {
			news[key] = known[key]
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

// tells is what the build loop gets of a certificate. It requires mu.
func (w *Watch) tells(want wanted) *model.Automatic {
	if r := w.rows[want.host]; r != nil {
		return w.challenged(want.host, r.served)
	}
	return w.challenged(want.host, &model.Automatic{Host: want.host})
}

// read reads what has changed in the store.
func (w *Watch) read(ctx context.Context) error {
	w.reading.Lock()
	defer w.reading.Unlock()
	w.mu.Lock()
	version := w.version
	w.mu.Unlock()
	changed, now, full, err := w.opts.Store.AutomaticSince(ctx, version)
	if err != nil || now == version {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if full {
		clear(w.rows)
		clear(w.trials)
	}
	for _, a := range changed {
		w.keepRow(a)
	}
	w.version = now
	return nil
}

// keepRow puts what is stored where it belongs. It requires mu.
func (w *Watch) keepRow(a store.Automatic) {
	rows := w.rows
	host, test := strings.CutPrefix(a.Host, trialPrefix)
	if test {
		rows = w.trials
	}
	delete(rows, host)
	if a.Gone {
		return
	}
	r, err := newRow(a)
	if err != nil || test && r.state.Test == nil {
		w.opts.Log.Error("what is stored of a certificate is not used", "host", a.Host, "err", err)
		return
	}
	rows[host] = r
}

// follow reads what has changed, and tells who needs to know.
func (w *Watch) follow(ctx context.Context) {
	if err := w.read(ctx); err != nil {
		if ctx.Err() == nil {
			w.opts.Log.Warn("automatic certificates not read, trying again", "err", err)
		}
		return
	}
	w.tell()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, want := range w.list {
		if !equal(w.tells(want), w.told[want.service.Key()]) {
			signal(w.changed)
			return
		}
	}
}

// save stores a step of an attempt. All replicas see it.
func (w *Watch) save(ctx context.Context, r *row) error {
	text, err := marshal(r.state)
	if err != nil {
		return err
	}
	r.State = text
	if err := w.opts.Store.SaveAutomatic(ctx, w.opts.Holder, &r.Automatic); err != nil {
		return err
	}
	r.derive()
	w.follow(ctx)
	return nil
}

// Concerns reports whether any of the objects is a service with an automatic certificate: the Envoys then get more than
// what is written.
func (w *Watch) Concerns(keys []model.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(keys, func(key model.Key) bool { return w.told[key] != nil })
}

// signal never blocks.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
