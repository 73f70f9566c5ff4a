package kube

import (
	"context"
	"maps"
	"sync"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Source is a source of the build loop whose changes include the endpoints of the upstreams. It returns nothing
// before the first complete configuration is in the mirror.
type Source struct {
	inner   store.Source
	changed chan struct{} // capacity 1: signals the build loop
	// complete is closed when the mirror has the first complete configuration.
	complete chan struct{}

	mu        sync.Mutex
	endpoints map[model.Key]*model.Endpoints
	// dirty are the upstreams whose new endpoints the build loop has not received.
	dirty map[model.Key]bool
}

func newSource(inner store.Source) *Source {
	return &Source{
		inner: inner, changed: make(chan struct{}, 1), complete: make(chan struct{}),
		endpoints: map[model.Key]*model.Endpoints{}, dirty: map[model.Key]bool{},
	}
}

// Changed implements store.Source.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Since implements store.Source. A change that names an upstream includes its endpoints. They are looked up after the
// mirror was read, and set before it is written, so that no upstream is returned without them.
func (s *Source) Since(ctx context.Context, at model.Mark) (model.Change, error) {
	select {
	case <-s.complete:
	case <-ctx.Done():
		return model.Change{}, ctx.Err()
	}
	change, err := s.inner.Since(ctx, at)
	if err != nil {
		return change, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if change.Full {
		change.Endpoints = maps.Clone(s.endpoints)
		clear(s.dirty)
		return change, nil
	}
	change.Endpoints = make(map[model.Key]*model.Endpoints, len(s.dirty))
	for key := range s.dirty {
		change.Endpoints[key] = s.endpoints[key]
	}
	clear(s.dirty)
	for _, e := range change.Entries {
		if found := s.endpoints[e.Key]; found != nil && e.Object != nil {
			change.Endpoints[e.Key] = found
		}
	}
	return change, nil
}

// set stores endpoints that have changed; nil means that the upstream is no longer discovered.
func (s *Source) set(changed map[model.Key]*model.Endpoints, gone bool) {
	s.mu.Lock()
	some := false
	for key, endpoints := range changed {
		switch {
		case (endpoints == nil) != gone:
			continue
		case gone:
			delete(s.endpoints, key)
		default:
			s.endpoints[key] = endpoints
		}
		s.dirty[key], some = true, true
	}
	s.mu.Unlock()
	if some {
		signal(s.changed)
	}
}

// run forwards signals of changes in the mirror until ctx ends.
func (s *Source) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.inner.Changed():
			signal(s.changed)
		}
	}
}
