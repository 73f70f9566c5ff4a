package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/certificates"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/xdsauth"
)

// certificateSource is the source of the conditions of certificates.
const certificateSource = "certificates"

// longestLook bounds how long the clock is trusted to run evenly: a machine may sleep.
const longestLook = time.Minute

// certificateWatch is a source that keeps the conditions of certificates current, with
// what the build loop reads and as time passes.
type certificateWatch struct {
	pipeline.Source
	registry *status.Registry
	log      *slog.Logger
	now      func() time.Time
	// port returns when the files of the xDS port end; nil means that it has none.
	port func() []xdsauth.End
	// changed signals that the next conditions differ. It carries no data.
	changed chan struct{}

	mu  sync.Mutex
	set *certificates.Set
	// told has the last reported code of each secret.
	told map[model.Key]string
	// proxies are the keys of all proxies: their Envoys use the xDS port.
	proxies map[model.Key]bool
}

func watchCertificates(source pipeline.Source, registry *status.Registry, log *slog.Logger, now func() time.Time) *certificateWatch {
	return &certificateWatch{
		Source: source, registry: registry, log: log, now: now,
		changed: make(chan struct{}, 1), set: certificates.New(), told: map[model.Key]string{}, proxies: map[model.Key]bool{},
	}
}

// Since implements pipeline.Source.
func (w *certificateWatch) Since(ctx context.Context, at model.Mark) (model.Change, error) {
	change, err := w.Source.Since(ctx, at)
	if err != nil {
		return change, err
	}
	w.mu.Lock()
	different := w.set.Apply(change)
	different = w.applyProxies(change) || different
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
	now := w.now()
	conditions, until := w.set.Conditions(now)
	conditions = append(conditions, w.portConditions(now)...)
	if soon := now.Add(longestLook); w.port != nil && (until.IsZero() || until.After(soon)) {
		until = soon // the files may change
	}
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

// applyProxies keeps proxies current, and reports whether they changed.
func (w *certificateWatch) applyProxies(change model.Change) (different bool) {
	if change.Full {
		different = len(w.proxies) > 0
		clear(w.proxies)
	}
	for _, e := range change.Entries {
		if e.Key.Kind != model.KindProxy {
			continue
		}
		different = true
		if delete(w.proxies, e.Key); e.Object != nil {
			w.proxies[e.Key] = true
		}
	}
	return different
}

// portConditions returns the conditions of proxies whose Envoys will not be able to connect.
func (w *certificateWatch) portConditions(now time.Time) (list []model.Condition) {
	if w.port == nil {
		return nil
	}
	for _, end := range w.port() {
		code, when := model.CertificateExpired, "ended at "
		if end.At.After(now) {
			code, when = model.CertificateExpires, "ends at "
		}
		if now.Before(end.At.Add(-end.Notice)) {
			continue
		}
		for key := range w.proxies {
			list = append(list, model.Condition{Key: key, Code: code, Message: "of the xDS port, " + end.What + " (" + end.File + ") " +
				when + end.At.UTC().Format("2006-01-02 15:04:05 UTC") + ": " + end.Effect})
		}
	}
	return list
}

// portEnds returns the seconds until the files of the xDS port end: for each kind, the first end.
func (w *certificateWatch) portEnds() map[string]float64 {
	seconds := map[string]float64{}
	if w.port == nil {
		return seconds
	}
	for _, end := range w.port() {
		left := end.At.Sub(w.now()).Seconds()
		if first, known := seconds[end.Kind]; !known || left < first {
			seconds[end.Kind] = left
		}
	}
	return seconds
}
