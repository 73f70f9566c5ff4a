package embedded

import (
	"context"
	"math"
	"runtime/debug"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/limiter"
	"github.com/envoyproxy/ratelimit/src/utils"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ShouldRateLimit implements rlsv3.RateLimitServiceServer with the rules of the
// stock service (its src/service and src/redis). For each descriptor, it returns
// the same code, limit, remaining number and time until reset, from which Envoy
// makes the x-ratelimit headers. It counts every descriptor, even if another one is
// over its limit. After an error, nothing was counted.
func (e *Engine) ShouldRateLimit(
	ctx context.Context, r *rlsv3.RateLimitRequest,
) (_ *rlsv3.RateLimitResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.options.Log.ErrorContext(ctx, "rate-limit request panicked", "err", p, "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "the rate limit engine failed at this request")
		}
	}()
	state := e.state.Load()
	switch {
	case state == nil:
		return nil, status.Error(codes.Unavailable, "no rate limit configuration loaded")
	case r.GetDomain() == "":
		return nil, status.Error(codes.InvalidArgument, "rate limit domain must not be empty")
	case len(r.GetDescriptors()) == 0:
		return nil, status.Error(codes.InvalidArgument, "rate limit descriptor list must not be empty")
	}
	response := &rlsv3.RateLimitResponse{
		OverallCode: rlsv3.RateLimitResponse_OK,
		Statuses:    make([]*rlsv3.RateLimitResponse_DescriptorStatus, len(r.GetDescriptors())),
	}
	d, known := (*state)[r.GetDomain()]
	if !known {
		for i := range response.Statuses {
			response.Statuses[i] = &rlsv3.RateLimitResponse_DescriptorStatus{Code: rlsv3.RateLimitResponse_OK}
		}
		return response, nil
	}
	limits, err := d.limits(ctx, r)
	if err != nil {
		return nil, err
	}
	hits := utils.GetHitsAddends(r)
	for i, limit := range limits {
		s := e.count(d, limit, r.GetDescriptors()[i].GetEntries(), hits[i])
		response.Statuses[i] = s
		if s.GetCode() == rlsv3.RateLimitResponse_OVER_LIMIT {
			response.OverallCode = rlsv3.RateLimitResponse_OVER_LIMIT
		}
	}
	return response, nil
}

// limits returns the limit of each descriptor; nil if it has none, or if the limit
// of another descriptor replaces it.
func (d *domain) limits(ctx context.Context, r *rlsv3.RateLimitRequest) ([]*config.RateLimit, error) {
	limits := make([]*config.RateLimit, len(r.GetDescriptors()))
	var replaced map[string]bool
	for i, descriptor := range r.GetDescriptors() {
		limit := d.GetLimit(ctx, r.GetDomain(), descriptor)
		if limit == nil {
			continue
		}
		// Only a request with its own limit can have such a unit.
		if _, ok := rlsv3.RateLimitResponse_RateLimit_Unit_name[int32(limit.Limit.GetUnit())]; !limit.Unlimited &&
			(!ok || limit.Limit.GetUnit() == rlsv3.RateLimitResponse_RateLimit_UNKNOWN) {
			return nil, status.Errorf(codes.InvalidArgument, "invalid rate limit unit '%s'", limit.Limit.GetUnit())
		}
		limits[i] = limit
		for _, name := range limit.Replaces {
			if replaced == nil {
				replaced = map[string]bool{}
			}
			replaced[name] = true
		}
	}
	for i, limit := range limits {
		// An unlimited limit is not replaced: the response reports it.
		if limit != nil && !limit.Unlimited && limit.Name != "" && replaced[limit.Name] {
			limits[i] = nil
		}
	}
	return limits, nil
}

func (e *Engine) count(d *domain, limit *config.RateLimit, entries []*commonv3.RateLimitDescriptor_Entry,
	hits uint64,
) *rlsv3.RateLimitResponse_DescriptorStatus {
	switch {
	case limit == nil:
		return &rlsv3.RateLimitResponse_DescriptorStatus{Code: rlsv3.RateLimitResponse_OK}
	case limit.Unlimited:
		return &rlsv3.RateLimitResponse_DescriptorStatus{Code: rlsv3.RateLimitResponse_OK, LimitRemaining: math.MaxUint32}
	}
	limit.Stats.TotalHits.Add(hits)
	unit, most := limit.Limit.GetUnit(), uint64(limit.Limit.GetRequestsPerUnit())
	key := e.counters.id(d.wire, int32(unit), entries)
	before, after, now, end := e.counters.add(key, int32(unit), utils.UnitToDivider(unit), hits)
	s := e.limiter.GetResponseDescriptorStatus("counted", limiter.NewRateLimitInfo(limit, before, after, 0, 0), false,
		hits)
	// The upstream reads the clock again, which may already be in the next window.
	s.DurationUntilReset.Seconds = end - now
	if over := min(hits, after-min(after, most)); over > 0 {
		e.top.add(key, now, over, func() Limited {
			return Limited{Domain: d.wire, Key: d.tallyOf(limit).key, Value: valueText(entries), Shadow: limit.ShadowMode}
		})
	}
	return s
}
