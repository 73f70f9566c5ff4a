package build

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Source is where the configuration comes from.
type Source interface {
	// Since returns what changed after a revision; everything for the zero Mark.
	Since(ctx context.Context, at model.Mark) (model.Change, error)
	// Changed receives, without content, after each change.
	Changed() <-chan struct{}
}

// Publisher takes the snapshots of the proxies that changed to the Envoys; nil
// means that the proxy does not exist any more. The first call holds every
// proxy.
type Publisher interface {
	Publish(revision int64, changed map[string]*snapshot.Snapshot)
	// Replace is Publish after the numbers of revisions have started over: no number from
	// before may be compared with one from now on.
	Replace(revision int64, changed map[string]*snapshot.Snapshot)
}

// Options of a Loop; all but Settings and RateLimits are required.
type Options struct {
	Source    Source
	Publisher Publisher
	Status    *status.Registry
	// RateLimits takes the domains of the rate-limit engine from a revision on,
	// before that is published; nil means that there is none.
	RateLimits func(revision int64, domains []*limits.Domain) error
	Settings   compile.Settings
	Log        *slog.Logger
}

// Loop reads changes and publishes what it builds from them. Use NewLoop.
type Loop struct {
	opts      Options
	ready     chan struct{}
	questions chan question
	published atomic.Pointer[model.Mark]
}

// NewLoop returns a loop that has not read anything yet.
func NewLoop(opts Options) *Loop {
	return &Loop{opts: opts, ready: make(chan struct{}), questions: make(chan question)}
}

// Published is the newest revision that was published; the zero Mark before the
// first.
func (l *Loop) Published() model.Mark {
	if mark := l.published.Load(); mark != nil {
		return *mark
	}
	return model.Mark{}
}

// Ready is closed when the first complete configuration was published.
func (l *Loop) Ready() <-chan struct{} { return l.ready }

// Run works until ctx ends. An error of the source is logged and tried again:
// what is published stays in force meanwhile.
func (l *Loop) Run(ctx context.Context) error {
	build, err := NewBuild(l.opts.Settings)
	if err != nil {
		return err
	}
	const firstDelay, lastDelay = 100 * time.Millisecond, 5 * time.Second
	delay := firstDelay
	var waiting []question
	for {
		again := (<-chan time.Time)(nil)
		asked := len(waiting)
		if err := l.step(ctx, build); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			l.opts.Log.Warn("configuration cannot be read; what is live stays live", "err", err, "retry_in", delay)
			again = time.After(delay)
			delay = min(2*delay, lastDelay)
		} else {
			delay = firstDelay
			answer(waiting[:asked], build)
			waiting = waiting[asked:]
		}
		for changed := false; !changed; {
			select {
			case <-ctx.Done():
				return nil
			case q := <-l.questions:
				waiting = append(waiting, q)
				changed = again == nil // else it is tried soon
			case <-l.opts.Source.Changed():
				changed = true
			case <-again:
				changed = true
			}
		}
	}
}

// step brings everything to the newest revision.
func (l *Loop) step(ctx context.Context, build *Build) error {
	change, err := l.opts.Source.Since(ctx, build.config.Mark())
	if err != nil {
		return fmt.Errorf("reading changes since revision %d: %w", build.Revision(), err)
	}
	first := !build.loaded
	if !first && !change.Full && len(change.Entries) == 0 && len(change.Learned) == 0 && len(change.Endpoints) == 0 {
		return nil
	}
	start := time.Now()
	result := build.Apply(change)
	// The rate-limit engine knows a domain before an Envoy uses it.
	if l.opts.RateLimits != nil && result.RateLimits != nil {
		if err := l.opts.RateLimits(change.Revision, result.RateLimits); err != nil {
			l.opts.Log.Error("the rate-limit engine keeps what it had", "err", err)
		}
	}
	// An Envoy may answer before Publish returns.
	l.opts.Status.RecordPublish(change.Revision, len(change.Entries), slices.Collect(maps.Keys(result.Snapshots)), time.Since(start))
	publish := l.opts.Publisher.Publish
	if change.Restored {
		l.opts.Log.Warn("the database has changed under the running program, as after the restore of a backup; everything is loaded again",
			"rev", change.Revision)
		publish = l.opts.Publisher.Replace
	}
	publish(change.Revision, result.Snapshots)
	l.published.Store(&model.Mark{Revision: change.Revision, ID: change.ID})
	for source, conditions := range result.Conditions {
		l.opts.Status.SetConditions(source, conditions)
		for _, c := range conditions {
			level := slog.LevelWarn
			if c.Code == model.NoUpstream || c.Code == model.NoEndpoints { // what every new route begins with
				level = slog.LevelDebug
			}
			l.opts.Log.Log(ctx, level, "object is not live as written", "object", c.Key.Path(), "code", c.Code, "reason", c.Message)
		}
	}
	level := slog.LevelInfo
	if !first && !change.Full && len(change.Entries)+len(change.Learned) == 0 { // endpoints come and go all the time
		level = slog.LevelDebug
	}
	l.opts.Log.Log(ctx, level, "configuration published", "rev", change.Revision, "changes", len(change.Entries), "endpoints", len(change.Endpoints),
		"proxies", len(result.Snapshots), "took", time.Since(start).Round(time.Microsecond))
	if first {
		close(l.ready)
	}
	return nil
}
