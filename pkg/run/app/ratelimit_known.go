package app

import (
	"sync/atomic"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/embedded"
)

// knownLimits are the limits that were last passed to the rate-limit engines.
type knownLimits struct {
	domains atomic.Pointer[[]*limits.Domain]
}

// recordingInto returns a function that calls next and remembers its arguments.
func (k *knownLimits) recordingInto(next func(int64, []*limits.Domain) error) func(int64, []*limits.Domain) error {
	return func(revision int64, domains []*limits.Domain) error {
		k.domains.Store(&domains)
		return next(revision, domains)
	}
}

// find serves explain.State.Limits.
func (k *knownLimits) find(domain string, descriptors [][]explain.Entry) ([]*explain.Limit, error) {
	found := make([]*explain.Limit, len(descriptors))
	d := k.domain(domain)
	if d == nil {
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

// domain returns the domain with a name on the wire; nil if there is none.
func (k *knownLimits) domain(wire string) *limits.Domain {
	if domains := k.domains.Load(); domains != nil {
		for _, d := range *domains {
			if d.Wire() == wire {
				return d
			}
		}
	}
	return nil
}
