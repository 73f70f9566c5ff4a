package embedded

import (
	"context"
	"fmt"
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
)

// Entry is one part of a descriptor, as Envoy sends it.
type Entry struct{ Key, Value string }

// Met is a limit that a descriptor meets.
type Met struct {
	// Key is the limit's path, as in a Stat.
	Key string
	// Unit is second, minute and so on; empty if Unlimited.
	Unit              string
	RequestsPerUnit   uint32
	Unlimited, Shadow bool
}

// Find returns which limits the descriptors of one request would meet in a
// domain, by the rules of ShouldRateLimit. They are in the order of the
// descriptors, with nil for none. It counts nothing. The error has the text with
// which an engine refuses the domain.
func Find(d *limits.Domain, descriptors [][]Entry) ([]*Met, error) {
	loaded, err := buildDomain(ratelimit.Configs([]*limits.Domain{d})[0], nil)
	if err != nil {
		return nil, fmt.Errorf("loading rate limits: %w", err)
	}
	r := &rlsv3.RateLimitRequest{Domain: d.Wire()}
	for _, entries := range descriptors {
		descriptor := &commonv3.RateLimitDescriptor{}
		for _, e := range entries {
			descriptor.Entries = append(descriptor.Entries, &commonv3.RateLimitDescriptor_Entry{Key: e.Key, Value: e.Value})
		}
		r.Descriptors = append(r.Descriptors, descriptor)
	}
	met, err := loaded.limits(context.Background(), r)
	if err != nil {
		return nil, err
	}
	found := make([]*Met, len(met))
	for i, l := range met {
		if l == nil {
			continue
		}
		found[i] = &Met{Key: loaded.tallyOf(l).key, Unlimited: l.Unlimited, Shadow: l.ShadowMode}
		if !l.Unlimited {
			found[i].Unit = strings.ToLower(l.Limit.GetUnit().String())
			found[i].RequestsPerUnit = l.Limit.GetRequestsPerUnit()
		}
	}
	return found, nil
}
