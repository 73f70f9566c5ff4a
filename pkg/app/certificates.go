package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/build"
	"github.com/gatehouse-gateway/gatehouse/pkg/certificates"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/status"
)

// certificateSource is the source of the conditions of certificates.
const certificateSource = "certificates"

// longestLook bounds how long the clock is trusted to run evenly: a machine may sleep.
const longestLook = time.Minute

// certificateWatch is a source that keeps the conditions of certificates current, with
// what the build loop reads and as time passes.
type certificateWatch struct {
	build.Source
	registry *status.Registry
	log      *slog.Logger
	now      func() time.Time
	// changed signals that the next conditions differ. It carries no data.
	changed chan struct{}

	mu  sync.Mutex
	set *certificates.Set
	// told has the last reported code of each secret.
	told map[model.Key]string
}

func watchCertificates(source build.Source, registry *status.Registry, log *slog.Logger, now func() time.Time) *certificateWatch {
	return &certificateWatch{
		Source: source, registry: registry, log: log, now: now,
		changed: make(chan struct{}, 1), set: certificates.New(), told: map[model.Key]string{},
	}
}

// Since implements build.Source.
func (w *certificateWatch) Since(ctx context.Context, at model.Mark) (model.Change, error) {
	change, err := w.Source.Since(ctx, at)
	if err != nil {
		return change, err
	}
	w.mu.Lock()
	different := w.set.Apply(change)
	w.mu.Unlock()
	if different {
		w.look()
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	return change, nil
}

// run updates the conditions as time passes, until ctx ends.
func (w *certificateWatch) run(ctx context.Context) error {
	for {
		var later <-chan time.Time
		if until := w.look(); !until.IsZero() {
			later = time.After(min(until.Sub(w.now()), longestLook))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.changed:
		case <-later:
		}
	}
}

// look updates the conditions. It returns when they next change by themselves.
func (w *certificateWatch) look() (until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	conditions, until := w.set.Conditions(w.now())
	w.registry.SetConditions(certificateSource, conditions)
	told := map[model.Key]string{}
	for _, c := range conditions {
		if c.Key.Kind != model.KindSecret {
			continue
		}
		told[c.Key] = c.Code
		if w.told[c.Key] != c.Code {
			w.registry.RecordCertificate(c)
			w.log.Warn("certificate ends", "object", c.Key.Path(), "code", c.Code, "reason", c.Message)
		}
	}
	w.told = told
	return until
}

// ends returns the seconds until the certificate of each secret expires.
func (w *certificateWatch) ends() map[string]float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, seconds := w.now(), map[string]float64{}
	for name, end := range w.set.Ends() {
		seconds[name] = end.Sub(now).Seconds()
	}
	return seconds
}
