package embedded

import (
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/utils"
)

// Count counts a value without the lookup of its limit, which takes most of the
// time of a request.
func (e *Engine) Count(domain string, unit rlsv3.RateLimitResponse_RateLimit_Unit, d *commonv3.RateLimitDescriptor) {
	key := e.counters.id(domain, int32(unit), d.GetEntries())
	e.counters.add(key, int32(unit), utils.UnitToDivider(unit), 1)
}
