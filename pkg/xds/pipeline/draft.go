package pipeline

import (
	"context"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Draft is the published configuration, to which changes are tried. Nothing that is published comes from it.
type Draft struct {
	settings compile.Settings
	whole    model.Change
}

// Draft waits until the current state of the store is published, and returns it.
func (l *Loop) Draft(ctx context.Context) (*Draft, error) {
	return ask(ctx, l, (*Build).Draft)
}

// Draft returns the configuration that was built. It stays as it is when b changes.
func (b *Build) Draft() *Draft { return &Draft{b.settings, b.config.Whole()} }

// Snapshot returns what the Envoys of a proxy should have after some changes, and the domains of the rate-limit engine.
// It is nil if there is no such proxy. Only the services of the proxy are built.
func (d *Draft) Snapshot(proxy string, changes []model.Entry) (*snapshot.Snapshot, []*limits.Domain, error) {
	build, err := NewBuild(d.settings)
	if err != nil {
		return nil, nil, err
	}
	change := d.whole
	change.Entries = entriesOf(proxy, d.whole.Entries, changes)
	result := build.Apply(change)
	return result.Snapshots[proxy], result.RateLimits, nil
}

// entriesOf returns the objects after some changes, without the services that a proxy does not have.
func entriesOf(proxy string, before, changes []model.Entry) []model.Entry {
	changed := map[model.Key]bool{}
	for _, e := range changes {
		changed[e.Key] = true
	}
	all, served := make([]model.Entry, 0, len(before)+len(changes)), map[model.Key]bool{}
	add := func(e model.Entry) {
		if e.Object == nil {
			return
		}
		all = append(all, e)
		if e.Key.Kind == model.KindProxyService && e.Key.Owner() == model.ProxyKey(proxy) {
			served[e.Key.Attached()] = true
		}
	}
	for _, e := range before {
		if !changed[e.Key] {
			add(e)
		}
	}
	for _, e := range changes {
		add(e)
	}
	kept := all[:0]
	for _, e := range all {
		service := e.Key.Root()
		if e.Key.Kind == model.KindProxyService {
			service = e.Key.Attached()
		}
		if service.Kind != model.KindService || served[service] {
			kept = append(kept, e)
		}
	}
	return kept
}
