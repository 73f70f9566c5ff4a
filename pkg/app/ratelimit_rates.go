package app

import (
	"sync/atomic"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit/embedded"
)

// rates are what the rate-limit engines were given last.
type rates struct {
	domains atomic.Pointer[[]ratelimit.Domain]
}

// recordingInto returns a function that calls next and remembers its arguments.
func (k *rates) recordingInto(next func(int64, []ratelimit.Domain) error) func(int64, []ratelimit.Domain) error {
	return func(revision int64, domains []ratelimit.Domain) error {
		k.domains.Store(&domains)
		return next(revision, domains)
	}
}

// find serves explain.State.Limits.
func (k *rates) find(domain string, descriptors [][]explain.Entry) ([]*explain.Limit, error) {
	found := make([]*explain.Limit, len(descriptors))
	d, ok := k.domain(domain)
	if !ok {
		return found, nil
	}
	asked := make([][]embedded.Entry, len(descriptors))
	for i, entries := range descriptors {
		for _, e := range entries {
			asked[i] = append(asked[i], embedded.Entry(e))
		}
	}
	met, err := embedded.Find(d, asked)
	if err != nil {
		return nil, err
	}
	for i, m := range met {
		if m != nil {
			found[i] = &explain.Limit{
				Limit: m.Key, Unit: m.Unit, RequestsPerUnit: m.RequestsPerUnit, Unlimited: m.Unlimited, Shadow: m.Shadow,
			}
		}
	}
	return found, nil
}

func (k *rates) domain(wire string) (ratelimit.Domain, bool) {
	if domains := k.domains.Load(); domains != nil {
		for _, d := range *domains {
			if d.Wire() == wire {
				return d, true
			}
		}
	}
	return ratelimit.Domain{}, false
}
