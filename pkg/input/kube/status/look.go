package status

import (
	"context"
	"log/slog"
	"slices"
	"time"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// Sources provide what is known of the objects. All are required.
type Sources struct {
	// Proxies are the proxies of this installation.
	Proxies []string
	// Objects lists the objects as the API server has them, from a cache.
	Objects func(ctx context.Context) ([]Cached, error)
	// Became returns the results of their translation.
	Became func() map[translate.Ref]*translate.Object
	// Report returns the report of this replica, with its name; Others returns the reports of the others. Heard reports
	// whether the others could be read once: before that, their number is unknown.
	Report func() replicas.Report
	Others func() []replicas.Other
	Heard  func() bool
	// Moved is closed when the others may report something else.
	Moved func() <-chan struct{}
	// Installations knows which other installations exist.
	Installations *Installations
	// Registry has the conditions of the mirror.
	Registry *status.Registry
	Log      *slog.Logger
}

// Looker returns all objects to a Writer. Use NewLooker. Look must be called by one goroutine.
type Looker struct {
	from    Sources
	first   map[Ref]first
	changed chan struct{}
	failed  bool // of the last look
}

// first is when a generation appeared, as far as this replica knows.
type first struct {
	uid        string
	generation int64
	version    int64
}

// NewLooker returns a Looker.
func NewLooker(s Sources) *Looker {
	return &Looker{from: s, first: map[Ref]first{}, changed: make(chan struct{}, 1)}
}

// Changed receives when Look may return something else.
func (l *Looker) Changed() <-chan struct{} { return l.changed }

// Tell signals that objects have changed. It never waits.
func (l *Looker) Tell([]translate.Ref) {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// lookEvery is how often to look without a signal: what an Envoy waits for changes without an event.
const lookEvery = 2 * time.Second

// Run signals changes of what the Envoys have, here and elsewhere, until ctx ends.
func (l *Looker) Run(ctx context.Context) error {
	feed := l.from.Registry.Feed()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	cursor := feed.Now()
	for {
		_, more := feed.After(cursor, 1)
		if more == nil { // something has happened
			cursor = feed.Now()
			l.Tell(nil)
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-more:
		case <-l.from.Moved():
			l.Tell(nil)
		case <-tick.C:
			l.Tell(nil)
		}
	}
}

// Look returns all objects that belong to this installation. ok is false if they cannot be listed now.
func (l *Looker) Look(ctx context.Context) (objects []Object, ok bool) {
	cached, err := l.from.Objects(ctx)
	if err != nil {
		if ctx.Err() == nil && !l.failed {
			l.from.Log.Warn("the objects whose conditions are written cannot be listed, trying again", "err", err)
		}
		l.failed = true
		return nil, false
	}
	l.failed = false
	own := l.from.Report()
	k := known{
		served: l.from.Proxies, installations: l.from.Installations, yields: map[string]Ref{},
		replicas:   []heard{readReport(replicas.Other{Report: &own}, own.Envoys)},
		conditions: byObject(l.from.Registry.Conditions()),
	}
	others := l.from.Others()
	for i, still := range replicas.WithoutMoved(l.from.Registry.Envoys(), others) {
		k.replicas = append(k.replicas, readReport(others[i], still.Envoys))
	}
	if !l.from.Heard() {
		k.replicas = append(k.replicas,
			readReport(replicas.Other{Report: &replicas.Report{Replica: "(others)"}, Unheard: true}, nil))
	}
	became := l.from.Became()
	there := make(map[Ref]bool, len(cached))
	for _, o := range cached {
		b := became[translate.Ref(o.Ref)]
		if b != nil && o.Make != nil {
			o.API = o.Make(b)
		}
		if b == nil || o.API != nil && !o.API.Ours() || o.API == nil && !k.isOurs(o, b) {
			continue
		}
		there[o.Ref] = true
		f := l.first[o.Ref]
		if f.uid != string(o.UID) || f.generation != o.Generation {
			f = first{string(o.UID), o.Generation, o.ResourceVersion}
			l.first[o.Ref] = f
		}
		facts, built := k.factsOf(o, b, f.version)
		o.Facts, o.Pending = facts, !built
		objects = append(objects, o.Object)
	}
	l.from.Installations.yield(k.yields)
	for ref := range l.first {
		if !there[ref] {
			delete(l.first, ref)
		}
	}
	return objects, true
}

// isOurs reports whether this installation writes the status of an object. If several installations use it, the first
// one that has written its status does, until it is gone.
func (k known) isOurs(o Cached, became *translate.Object) bool {
	if became.Ignored {
		return false
	}
	written, writer := o.Status.Proxy, o.Status.Controller
	ours := slices.Contains(k.served, written)
	// A GatewayHost has one proxy: what was written for that of another installation is about a former spec.proxy.
	shared := written != "" && (ours || o.Kind != gatewayv1.KindGatewayHost)
	switch {
	case !shared || writer == k.installations.self:
	case writer == "": // by a version that did not write it
		if !ours {
			return false
		}
	case !k.installations.isGone(writer):
		if before, ok := k.yields[writer]; ours && len(became.Proxies) > 0 && (!ok || o.String() < before.String()) {
			k.yields[writer] = o.Ref
		}
		return false
	}
	return len(became.Proxies) > 0 || ours
}
