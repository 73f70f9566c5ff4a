package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Source provides the configuration.
type Source interface {
	// Since returns what changed after a revision. For the zero Mark, it returns
	// everything.
	Since(ctx context.Context, at model.Mark) (model.Change, error)
	// Changed receives a value after each change.
	Changed() <-chan struct{}
}

// Publisher sends the snapshots of the proxies that changed to the Envoys; nil means that
// the proxy no longer exists. The first call contains every proxy.
type Publisher interface {
	Publish(revision int64, changed map[string]*snapshot.Snapshot)
	// Replace is Publish after revision numbers have started again. Earlier numbers must
	// not be compared with later ones.
	Replace(revision int64, changed map[string]*snapshot.Snapshot)
}

// Options of a Loop. All except Settings and RateLimits are required.
type Options struct {
	Source    Source
	Publisher Publisher
	Status    *status.Registry
	// RateLimits receives the domains of the rate-limit engine from a revision on, before
	// that revision is published; nil means that there is no engine.
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

// NewLoop returns a loop that has read nothing yet.
func NewLoop(opts Options) *Loop {
	return &Loop{opts: opts, ready: make(chan struct{}), questions: make(chan question)}
}

// Published returns the newest published revision; the zero Mark before the first.
func (l *Loop) Published() model.Mark {
	if mark := l.published.Load(); mark != nil {
		return *mark
	}
	return model.Mark{}
}

// Ready is closed when the first complete configuration has been published.
func (l *Loop) Ready() <-chan struct{} { return l.ready }

// Run works until ctx ends. After an error of the source, it logs the error and tries
// again. What is published stays valid meanwhile.
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
				changed = again == nil // otherwise it is tried again soon
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
	if !first && !change.Full && len(change.Entries)+len(change.Learned)+len(change.Endpoints)+len(change.Automatic) == 0 {
		return nil
	}
	start := time.Now()
	result := build.Apply(change)
	// The rate-limit engine must know a domain before an Envoy uses it.
	if l.opts.RateLimits != nil && result.RateLimits != nil {
		if err := l.opts.RateLimits(change.Revision, result.RateLimits); err != nil {
			l.opts.Log.Error("the rate-limit engine keeps what it had", "err", err)
		}
	}
	// An Envoy may answer before Publish returns.
	l.opts.Status.RecordPublish(change.Revision, len(change.Entries), slices.Collect(maps.Keys(result.Snapshots)),
		time.Since(start))
	publish := l.opts.Publisher.Publish
	if change.Restored {
		l.opts.Log.Warn("the database has changed under the running program, as after the restore of a backup; "+
			"everything is loaded again", "rev", change.Revision)
		publish = l.opts.Publisher.Replace
	}
	publish(change.Revision, result.Snapshots)
	l.published.Store(&model.Mark{Revision: change.Revision, ID: change.ID})
	for source, conditions := range result.Conditions {
		l.opts.Status.SetConditions(source, conditions)
		for _, c := range conditions {
			level := slog.LevelWarn
			if c.Code == model.NoUpstream || c.Code == model.NoEndpoints { // every new route begins like this
				level = slog.LevelDebug
			}
			l.opts.Log.Log(ctx, level, "object is not live as written", "object", c.Key.Path(), "code", c.Code,
				"reason", c.Message)
		}
	}
	level := slog.LevelInfo
	if !first && !change.Full && len(change.Entries)+len(change.Learned)+len(change.Automatic) == 0 { // endpoints change all the time
		level = slog.LevelDebug
	}
	l.opts.Log.Log(ctx, level, "configuration published", "rev", change.Revision, "changes", len(change.Entries),
		"endpoints", len(change.Endpoints),
		"proxies", len(result.Snapshots), "took", time.Since(start).Round(time.Microsecond))
	if first {
		close(l.ready)
	}
	return nil
}
