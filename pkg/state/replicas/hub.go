package replicas

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// Options of a Hub. All except Wait and Now are required.
type Options struct {
	// Replica is the name of this replica; see Name.
	Replica string
	Board   Board
	// Registry has the events of this replica, and receives those of the others. The
	// hub is the reader of its Changed.
	Registry *status.Registry
	// Report returns the current report, without its name and events.
	Report func() Report
	// Wait waits for the Envoys of this replica only, as ?wait=applied does; with no
	// changed objects, until they have everything. Nil means that there is no wait.
	Wait func(ctx context.Context, revision int64, changed []model.Key) []status.Lag
	Log  *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Other is another replica, as it was last heard.
type Other struct {
	*Report
	// Heard is when it gave its last sign of life, by the clock of this replica.
	Heard time.Time
	// Unheard says that this is too long ago: what its Envoys have is unknown.
	Unheard bool
	// Gone says that its process counts as dead (Pace.Gone, noteDeparted). The report then
	// has only the Envoys that have not connected to another replica since.
	Gone bool
}

// stepTimeout bounds each call of the board.
const stepTimeout = 5 * time.Second

// Hub posts the report of this replica, and keeps the reports of the others. Use New. It is
// safe for concurrent use.
type Hub struct {
	opts    Options
	pace    Pace
	started time.Time

	mail    chan struct{} // capacity 1: the mail has changed
	refresh chan struct{} // capacity 1: a current read is needed

	// Only Run uses these.
	version   Versions // of the last post
	published []byte   // the last report, as JSON without its events
	out       outbox
	stuck     map[string]bool // what last failed; a board may be readable and not writable
	running   map[string]context.CancelFunc
	waits     sync.WaitGroup

	mu     sync.Mutex
	others map[string]*other
	moved  chan struct{} // closed, and replaced, when what is known of the others changes
	asked  int64         // counts the calls that want a fresh read
	read   int64         // the last of these calls that a read has served
	readAt time.Time     // when the last read began
	asks   map[string]Ask
	// answers are the answers of this replica, by the ID of the ask.
	answers map[string]Answer
	count   int64 // of asks, for their IDs
	// told is the number of the last event that each replica has reported.
	told map[string]int64
	// joined says that the others were read once.
	joined bool
}

// other is the state of another replica.
type other struct {
	versions Versions
	report   *Report
	mail     *Mail
	heard    time.Time
	unheard  bool
}

// New returns a hub that knows no other replica.
func New(opts Options) *Hub {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Hub{
		opts: opts, pace: opts.Board.Pace(), started: opts.Now(),
		mail: make(chan struct{}, 1), refresh: make(chan struct{}, 1),
		out: outbox{cursor: opts.Registry.Feed().Now()}, running: map[string]context.CancelFunc{}, stuck: map[string]bool{},
		others: map[string]*other{}, moved: make(chan struct{}), asks: map[string]Ask{}, answers: map[string]Answer{},
		told: map[string]int64{},
	}
}

// Name is the name of this replica.
func (h *Hub) Name() string { return h.opts.Replica }

// Others lists the other replicas, sorted by name.
func (h *Hub) Others() []Other {
	h.mu.Lock()
	now := h.opts.Now()
	list := make([]Other, 0, len(h.others))
	for _, o := range h.others {
		list = append(list, Other{o.report, o.heard, h.isUnheard(o, now), h.isGone(o, now)})
	}
	read := h.readAt
	h.mu.Unlock()
	slices.SortFunc(list, func(a, b Other) int { return cmp.Compare(a.Replica, b.Replica) })
	h.noteDeparted(list, read)
	return h.withoutSeen(list)
}

// isUnheard requires mu. A replica that has not posted anything yet is also not heard.
func (h *Hub) isUnheard(o *other, now time.Time) bool {
	return now.Sub(o.heard) > h.pace.Unheard || o.report.Started.IsZero()
}

// Moved is closed when what is known of the others may have changed.
func (h *Hub) Moved() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moved
}

// Join announces this replica to the others, and reads which others there are. It comes
// before the first Envoy is served, so that no replica overlooks this one. Run retries
// what fails.
func (h *Hub) Join(ctx context.Context) {
	h.try(ctx, telling, func(ctx context.Context) error {
		if err := h.publish(ctx); err != nil {
			return err
		}
		return h.readBoard(ctx)
	})
}

// Leave announces that this replica and its Envoys' streams have ended. It comes after
// Run.
func (h *Hub) Leave(ctx context.Context) {
	h.try(ctx, leaving, func(ctx context.Context) error { return h.opts.Board.End(ctx, h.opts.Replica) })
}

// Run publishes and reads until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	defer h.waits.Wait()
	beat, read := time.NewTicker(h.pace.Beat), time.NewTicker(h.pace.Read)
	defer beat.Stop()
	defer read.Stop()
	// due is when the next report may be published; it runs only while there is one to
	// publish.
	due := time.NewTimer(0)
	defer due.Stop()
	waiting, last := true, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.opts.Registry.Changed():
			if !waiting {
				waiting = true
				due.Reset(h.pace.Publish - h.opts.Now().Sub(last))
			}
		case <-due.C:
			waiting, last = false, h.opts.Now()
			if !h.try(ctx, telling, h.publish) {
				waiting = true
				due.Reset(time.Second)
			}
		case <-h.mail:
			if !h.try(ctx, telling, h.publishMail) {
				h.published, waiting = nil, true // the next report takes the mail along
				due.Reset(time.Second)
			}
		case <-beat.C:
			h.try(ctx, beating, h.beat)
		case <-h.opts.Board.Changed():
			h.try(ctx, reading, h.readBoard)
		case <-h.refresh:
			h.try(ctx, reading, h.readBoard)
		case <-read.C:
			// Conditions and Seen can change without an Envoy.
			if !waiting {
				waiting = true
				due.Reset(0)
			}
			if h.try(ctx, reading, h.readBoard) {
				h.try(ctx, burying, h.buryGone)
			}
			h.noteSilence()
		}
		h.runAsks(ctx)
	}
}

// What a hub does with its board.
const (
	telling = "telling the other replicas"
	beating = "giving a sign of life"
	reading = "reading the reports of the other replicas"
	burying = "forgetting replicas that are gone"
	leaving = "leaving"
)

// try calls the board. It logs the first of several failures, and when nothing fails any more.
func (h *Hub) try(ctx context.Context, doing string, do func(context.Context) error) bool {
	bound, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err := do(bound)
	switch {
	case ctx.Err() != nil:
		return err == nil
	case err != nil && len(h.stuck) == 0:
		h.opts.Log.Warn("what the replicas know of each other is outdated, trying again", "doing", doing, "err", err)
	case err == nil && h.stuck[doing] && len(h.stuck) == 1:
		h.opts.Log.Info("the replicas hear of each other again")
	}
	if delete(h.stuck, doing); err != nil {
		h.stuck[doing] = true
	}
	return err == nil
}

// publish posts the report, if it differs from the last.
func (h *Hub) publish(ctx context.Context) error {
	h.out.take(h.opts.Registry.Feed())
	r := h.opts.Report()
	r.Replica, r.Started, r.Events = h.opts.Replica, h.started, h.out.events
	body, err := encode(r)
	if err != nil {
		return err
	}
	if bytes.Equal(body, h.published) {
		return nil
	}
	if err := h.post(ctx, body); err != nil {
		return err
	}
	h.published = body
	return nil
}

// publishMail posts this replica's questions and answers.
func (h *Hub) publishMail(ctx context.Context) error { return h.post(ctx, nil) }

// post publishes a report, or nil, with the mail.
func (h *Hub) post(ctx context.Context, report []byte) error {
	mail, err := encode(h.mailNow())
	if err != nil {
		return err
	}
	next := h.version
	next.Mail++
	if report != nil {
		next.Report++
	}
	if err := h.opts.Board.Publish(ctx, Post{h.opts.Replica, next, report, mail}); err != nil {
		return err
	}
	h.version = next
	return nil
}

// beat gives a sign of life. After a restart of the database its unlogged tables
// are empty.
func (h *Hub) beat(ctx context.Context) error {
	if h.published != nil {
		kept, err := h.opts.Board.Beat(ctx, h.opts.Replica)
		if err != nil || kept {
			return err
		}
		h.published = nil
	}
	return h.publish(ctx)
}

// readBoard reads the posts of the others.
func (h *Hub) readBoard(ctx context.Context) error {
	h.mu.Lock()
	asked, began, have := h.asked, h.opts.Now(), make(map[string]Versions, len(h.others))
	for name, o := range h.others {
		have[name] = o.versions
	}
	h.mu.Unlock()
	notices, kept, err := h.opts.Board.Read(ctx, h.opts.Replica, have)
	if err != nil {
		return err
	}
	h.take(notices, asked, began)
	if kept || h.published == nil {
		return nil
	}
	h.published = nil
	return h.publish(ctx)
}

// take stores what was read since a moment.
func (h *Hub) take(notices []Notice, asked int64, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.opts.Now()
	for _, n := range notices {
		if n.Ended || n.Age > h.pace.Forget {
			h.forget(n.Replica)
			continue
		}
		o := h.others[n.Replica]
		if o == nil {
			o = &other{report: &Report{Replica: n.Replica}, mail: &Mail{}, heard: now}
			h.others[n.Replica] = o
			if len(h.asks) > 0 { // it may not know the asks
				wake(h.mail)
			}
			if h.joined {
				h.opts.Registry.RecordReplica(n.Replica, "it has appeared")
			}
		}
		o.heard = now.Add(-n.Age)
		h.update(o, n)
		h.noteHeard(o, now)
	}
	for name, o := range h.others {
		if now.Sub(o.heard) > h.pace.Forget {
			h.forget(name)
		}
	}
	h.read, h.readAt, h.joined = asked, began, true
	h.signal()
}

// forget removes a replica, if it is known. It requires mu.
func (h *Hub) forget(name string) {
	if h.others[name] != nil {
		delete(h.others, name)
		h.opts.Registry.RecordReplica(name, "it is gone")
	}
}

// update stores the new parts of a post. It requires mu.
func (h *Hub) update(o *other, n Notice) {
	if n.Report != nil && n.Versions.Report != o.versions.Report {
		r := &Report{}
		if err := decode(n.Report, r); err != nil {
			h.opts.Log.Warn("the report of another replica cannot be read", "replica", n.Replica, "err", err)
			r = &Report{}
		}
		r.Replica = n.Replica
		r.noteFirst(o.report, h.opts.Now())
		o.report, o.versions.Report = r, n.Versions.Report
		h.tell(r)
	}
	if n.Mail != nil && n.Versions.Mail != o.versions.Mail {
		m := &Mail{}
		if err := decode(n.Mail, m); err != nil {
			h.opts.Log.Warn("the mail of another replica cannot be read", "replica", n.Replica, "err", err)
			m = &Mail{}
		}
		o.mail, o.versions.Mail = m, n.Versions.Mail
	}
}

// noteSilence reports replicas that are no longer heard.
func (h *Hub) noteSilence() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.opts.Now()
	for _, o := range h.others {
		h.noteHeard(o, now)
	}
	h.signal()
}

// noteHeard reports when a replica becomes silent, or is heard again. It requires mu.
func (h *Hub) noteHeard(o *other, now time.Time) {
	silent := h.isUnheard(o, now)
	if silent == o.unheard {
		return
	}
	o.unheard = silent
	if silent {
		h.opts.Log.Warn("another replica is not heard; the state of its Envoys is unknown", "replica", o.report.Replica)
		h.opts.Registry.RecordReplica(o.report.Replica, "it is not heard: the state of its Envoys is unknown")
		return
	}
	h.opts.Log.Info("another replica is heard again", "replica", o.report.Replica)
	h.opts.Registry.RecordReplica(o.report.Replica, "it is heard again")
}

// signal requires mu.
func (h *Hub) signal() {
	close(h.moved)
	h.moved = make(chan struct{})
}
