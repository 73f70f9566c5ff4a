package kube

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// Positions exports positions to specs.
type Positions struct{ positions }

func (p *Positions) Add(revision int64, seen map[string]int64) { p.add(revision, seen) }

func (p *Positions) At(revision int64) map[string]int64 { return p.at(revision) }

// ReadProxies reads the file of the proxies.
func ReadProxies(text string, names ...string) ([]*model.Proxy, error) {
	return readProxies([]byte(text), names)
}

// Secrets exports secrets to specs.
type Secrets struct{ *secrets }

// NewSecrets returns secrets that read with api, and the signal that there are answers.
func NewSecrets(api client.Reader) (Secrets, <-chan struct{}) {
	answered := make(chan struct{}, 1)
	return Secrets{newSecrets(api, answered)}, answered
}

func (s Secrets) Run(ctx context.Context) error { return s.run(ctx) }

// Changed reports that Secrets have changed, as a watch does.
func (s Secrets) Changed(w *translate.World, refs ...translate.Ref) {
	for _, ref := range refs {
		s.versions[ref] = "1"
	}
	s.ask(w, refs, always(true))
}

func (s Secrets) Lacking(w *translate.World) int { return s.lacking(w, w.Settle(), always(false)) }

func (s Secrets) Take(w *translate.World) { s.take(w) }

// Due lists what to read again after a time, if nothing tells of changes.
func (s Secrets) Due(w *translate.World, watched bool, after time.Duration) []translate.Ref {
	s.due(w, always(watched)) // begins to count
	s.retried, s.polled = s.retried.Add(-after), s.polled.Add(-after)
	return s.due(w, always(watched))
}

func always(is bool) watched { return func(string) bool { return is } }
