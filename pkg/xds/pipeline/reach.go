package pipeline

import (
	"context"
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Reach is what a change may affect in the Envoys of one proxy.
type Reach struct {
	// Services are the names of the hosts, sorted.
	Services []string
	// Listeners means that the proxy itself may change. All means that everything
	// may.
	Listeners, All bool
}

// Reach waits until the current state of the store is published. It returns the
// proxies that the change of these objects reaches, and where in them. It relies
// on what was read after the call and not on a revision: after the restore of a
// backup, the revision of a write may equal that of a lost one.
func (l *Loop) Reach(ctx context.Context, keys []model.Key) (map[string]Reach, error) {
	return ask(ctx, l, func(b *Build) map[string]Reach { return b.Reach(keys) })
}

// question is asked of what is published, in the goroutine of the loop.
type question func(*Build)

// ask waits until the current state of the store is published, and asks it.
func ask[T any](ctx context.Context, l *Loop, of func(*Build) T) (reply T, err error) {
	answer := make(chan T, 1)
	select {
	case l.questions <- func(b *Build) { answer <- of(b) }:
	case <-ctx.Done():
		return reply, ctx.Err()
	}
	select {
	case reply = <-answer:
		return reply, nil
	case <-ctx.Done():
		return reply, ctx.Err()
	}
}

// answer answers the questions that arrived before the last step.
func answer(questions []question, build *Build) {
	for _, q := range questions {
		q(build)
	}
}

// addRedirected adds the services of a proxy that redirect clients to its other
// port.
func (b *Build) addRedirected(proxy string, to map[string]bool) {
	p := b.proxies[proxy]
	if p == nil {
		return
	}
	for name := range p.services {
		if s := b.services[name]; s != nil && s.plain != nil {
			to[name] = true
		}
	}
}

// Reach returns which proxies a change of these objects affects, and where.
func (b *Build) Reach(keys []model.Key) map[string]Reach {
	reached, _ := model.Reach(b.config, keys) // reads from memory do not fail
	served, _ := reached.ServedBy(b.config)
	reach := map[string]Reach{}
	services := map[string]map[string]bool{}
	for proxy, p := range reached.Proxies {
		reach[proxy] = Reach{Listeners: p.Listeners, All: p.All}
		services[proxy] = p.Services
		if p.Listeners {
			b.addRedirected(proxy, p.Services)
		}
	}
	keyed := slices.ContainsFunc(keys, func(k model.Key) bool {
		return k.Root().Kind == model.KindKeySet || k.Kind == model.KindList
	})
	if slices.ContainsFunc(keys, func(k model.Key) bool { return k.Kind == model.KindConsumer }) {
		for name, p := range b.proxies {
			if p.needs.Consumers {
				reach[name] = Reach{Services: reach[name].Services, Listeners: true, All: reach[name].All}
			}
		}
	}
	for service, proxies := range served {
		for _, proxy := range proxies {
			if services[proxy] == nil {
				services[proxy] = map[string]bool{}
			}
			services[proxy][service] = true
		}
	}
	for proxy, names := range services {
		if len(names) == 0 {
			continue
		}
		r := reach[proxy]
		r.Services = slices.Sorted(maps.Keys(names))
		// A limit in a named domain works only after the listener uses that
		// domain.
		p := b.proxies[proxy]
		// Keys and lists of addresses are delivered for the listener too.
		r.Listeners = r.Listeners || keyed || b.hasL4(b.proxies[proxy], r.Services...) ||
			len(b.needsOf(b.proxies[proxy], r.Services...).RateLimitDomains) > 0 ||
			p != nil && p.relistened == b.Revision()
		reach[proxy] = r
	}
	return reach
}
