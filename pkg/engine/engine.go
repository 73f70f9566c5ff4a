package engine

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit"
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
	// Replace is Publish for revisions that are numbered anew: no number from
	// before may be compared with one from now on.
	Replace(revision int64, changed map[string]*snapshot.Snapshot)
}

// Options of an Engine; all but Settings and RateLimits are required.
type Options struct {
	Source    Source
	Publisher Publisher
	Status    *status.Registry
	// RateLimits takes the domains of the rate-limit engine from a revision on,
	// before that is published; nil means that there is none.
	RateLimits func(revision int64, domains []ratelimit.Domain) error
	Settings   compile.Settings
	Log        *slog.Logger
}

// Engine is the loop. Use New.
type Engine struct {
	opts      Options
	ready     chan struct{}
	questions chan question
}

// New returns an engine that has not read anything yet.
func New(opts Options) *Engine {
	return &Engine{opts: opts, ready: make(chan struct{}), questions: make(chan question)}
}

// Ready is closed when the first complete configuration was published.
func (e *Engine) Ready() <-chan struct{} { return e.ready }

// Run works until ctx ends. An error of the source is logged and tried again:
// what is published stays in force meanwhile.
func (e *Engine) Run(ctx context.Context) error {
	build, err := NewBuild(e.opts.Settings)
	if err != nil {
		return err
	}
	const firstDelay, lastDelay = 100 * time.Millisecond, 5 * time.Second
	delay := firstDelay
	var waiting []question
	for {
		again := (<-chan time.Time)(nil)
		asked := len(waiting)
		if err := e.step(ctx, build); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			e.opts.Log.Warn("configuration cannot be read; what is live stays live", "err", err, "retry_in", delay)
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
			case q := <-e.questions:
				waiting = append(waiting, q)
				changed = again == nil // else it is tried soon
			case <-e.opts.Source.Changed():
				changed = true
			case <-again:
				changed = true
			}
		}
	}
}

// step brings everything to the newest revision.
func (e *Engine) step(ctx context.Context, build *Build) error {
	change, err := e.opts.Source.Since(ctx, build.config.Mark())
	if err != nil {
		return fmt.Errorf("reading changes since revision %d: %w", build.Revision(), err)
	}
	first := !build.loaded
	if !first && !change.Full && len(change.Entries) == 0 {
		return nil
	}
	start := time.Now()
	result := build.Apply(change)
	// The engine knows a domain before an Envoy asks in it.
	if e.opts.RateLimits != nil && result.RateLimits != nil {
		if err := e.opts.RateLimits(change.Revision, result.RateLimits); err != nil {
			e.opts.Log.Error("the rate-limit engine keeps what it had", "err", err)
		}
	}
	// An Envoy may answer before Publish returns.
	e.opts.Status.RecordPublish(change.Revision, len(change.Entries), slices.Collect(maps.Keys(result.Snapshots)), time.Since(start))
	publish := e.opts.Publisher.Publish
	if change.Restored {
		e.opts.Log.Warn("the database has changed under the running program, as after the restore of a backup; everything is loaded again",
			"rev", change.Revision)
		publish = e.opts.Publisher.Replace
	}
	publish(change.Revision, result.Snapshots)
	for source, conditions := range result.Conditions {
		e.opts.Status.SetConditions(source, conditions)
		for _, c := range conditions {
			level := slog.LevelWarn
			if c.Code == model.NoUpstream { // what every new route begins with
				level = slog.LevelDebug
			}
			e.opts.Log.Log(ctx, level, "object is not live as written", "object", c.Key.Path(), "code", c.Code, "reason", c.Message)
		}
	}
	e.opts.Log.Info("configuration published", "rev", change.Revision, "changes", len(change.Entries),
		"proxies", len(result.Snapshots), "took", time.Since(start).Round(time.Microsecond))
	if first {
		close(e.ready)
	}
	return nil
}
