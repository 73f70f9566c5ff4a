package expiry

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/certificates"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// certificateSource is the source of the conditions of certificates.
const certificateSource = "certificates"

// longestLook bounds how long the clock is trusted to run evenly: a machine may sleep.
const longestLook = time.Minute

// End says when a part of the files of the xDS port ends.
type End struct {
	// Kind is certificate, client_ca or client_crl; What names the part in a sentence, and File is where it is.
	Kind, What, File string
	At               time.Time
	// Notice is how long before At it is to be reported.
	Notice time.Duration
	// Effect says what happens then.
	Effect string
}

// Options of a Watch.
type Options struct {
	// Source is where the configuration comes from.
	Source store.Source
	Status *status.Registry
	Log    *slog.Logger
	Now    func() time.Time
	// Port returns when the files of the xDS port end; nil means that it has none.
	Port func() []End
}

// Watch is a source that keeps the conditions of certificates current, with what the build loop reads and as time
// passes. Use New.
type Watch struct {
	store.Source
	opts Options
	// changed signals that the next conditions differ, source that Since has something new. They carry no data.
	changed, source chan struct{}

	mu  sync.Mutex
	set *certificates.Set
	// told has the last reported code of each secret.
	told map[model.Key]string
	// proxies are the keys of all proxies: their Envoys use the xDS port.
	proxies map[model.Key]bool
	keys    keys
}

// New returns a Watch that knows no certificate yet.
func New(opts Options) *Watch {
	return &Watch{
		Source: opts.Source, opts: opts, changed: make(chan struct{}, 1), source: make(chan struct{}, 1), keys: keys{},
		set: certificates.New(), told: map[model.Key]string{}, proxies: map[model.Key]bool{},
	}
}

// Changed implements store.Source.
func (w *Watch) Changed() <-chan struct{} { return w.source }

// Since implements store.Source. API keys that have ended are marked.
func (w *Watch) Since(ctx context.Context, at model.Mark) (model.Change, error) {
	change, err := w.Source.Since(ctx, at)
	if err != nil {
		return change, err
	}
	w.mu.Lock()
	different := w.set.Apply(change)
	different = w.applyProxies(change) || different
	change, keyed := w.keys.apply(change, w.opts.Now())
	w.mu.Unlock()
	if different || keyed {
		w.look()
		signal(w.changed)
	}
	return change, nil
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run updates the conditions as time passes, until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	for {
		var later <-chan time.Time
		if until := w.look(); !until.IsZero() {
			later = time.After(min(until.Sub(w.opts.Now()), longestLook))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.Source.Changed():
			signal(w.source)
		case <-w.changed:
		case <-later:
		}
	}
}

// look updates the conditions. It returns when they next change by themselves.
func (w *Watch) look() (until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.opts.Now()
	conditions, until := w.set.Conditions(now)
	ofKeys, next := w.keys.conditions(now)
	if until = earlier(until, next); w.keys.differ(now) {
		signal(w.source)
	}
	conditions = append(slices.Concat(conditions, ofKeys), w.portConditions(now)...)
	if soon := now.Add(longestLook); w.opts.Port != nil && (until.IsZero() || until.After(soon)) {
		until = soon // the files may change
	}
	w.opts.Status.SetConditions(certificateSource, conditions)
	told := map[model.Key]string{}
	for _, c := range conditions {
		if c.Key.Kind != model.KindSecret && c.Key.Kind != model.KindAPIKey {
			continue
		}
		if told[c.Key] = c.Code; w.told[c.Key] != c.Code {
			w.tell(c)
		}
	}
	w.told = told
	return until
}

// tell reports a condition for the first time.
func (w *Watch) tell(c model.Condition) {
	if c.Key.Kind == model.KindAPIKey {
		w.opts.Status.RecordKey(c)
		w.opts.Log.Info("API key ends", "object", c.Key.Path(), "code", c.Code, "reason", c.Message)
		return
	}
	w.opts.Status.RecordCertificate(c)
	w.opts.Log.Warn("certificate ends", "object", c.Key.Path(), "code", c.Code, "reason", c.Message)
}

// Ends returns the seconds until the certificate of each secret expires.
func (w *Watch) Ends() map[string]float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, seconds := w.opts.Now(), map[string]float64{}
	for name, end := range w.set.Ends() {
		seconds[name] = end.Sub(now).Seconds()
	}
	return seconds
}

// applyProxies keeps proxies current, and reports whether they changed.
func (w *Watch) applyProxies(change model.Change) (different bool) {
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
func (w *Watch) portConditions(now time.Time) (list []model.Condition) {
	if w.opts.Port == nil {
		return nil
	}
	for _, end := range w.opts.Port() {
		code, when := model.CertificateExpired, "ended at "
		if end.At.After(now) {
			code, when = model.CertificateExpires, "ends at "
		}
		if now.Before(end.At.Add(-end.Notice)) {
			continue
		}
		for key := range w.proxies {
			message := "of the xDS port, " + end.What + " (" + end.File + ") " + when +
				end.At.UTC().Format("2006-01-02 15:04:05 UTC") + ": " + end.Effect
			list = append(list, model.Condition{Key: key, Code: code, Message: message})
		}
	}
	return list
}

// PortEnds returns the seconds until the files of the xDS port end: for each kind, the first end.
func (w *Watch) PortEnds() map[string]float64 {
	seconds := map[string]float64{}
	if w.opts.Port == nil {
		return seconds
	}
	for _, end := range w.opts.Port() {
		left := end.At.Sub(w.opts.Now()).Seconds()
		if first, known := seconds[end.Kind]; !known || left < first {
			seconds[end.Kind] = left
		}
	}
	return seconds
}
