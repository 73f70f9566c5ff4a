package embedded_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/embedded"
)

func TestEmbedded(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "embedded")
}

// clock is a clock that only a spec moves.
type clock struct{ nanoseconds atomic.Int64 }

// noon is a whole hour and a whole minute.
const noon = 1_800_000_000

func newClock() *clock {
	c := &clock{}
	c.nanoseconds.Store(noon * int64(time.Second))
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanoseconds.Load()) }
func (c *clock) advance(d time.Duration) { c.nanoseconds.Add(int64(d)) }

func loaded(c *clock, configs ...*rlsconf.RateLimitConfig) *embedded.Engine {
	GinkgoHelper()
	e := embedded.New(embedded.Options{Now: c.now})
	Expect(e.Load(configs)).To(Succeed())
	return e
}

func domainOf(domain string, descriptors ...*rlsconf.RateLimitDescriptor) *rlsconf.RateLimitConfig {
	return &rlsconf.RateLimitConfig{Name: domain, Domain: domain, Descriptors: descriptors}
}

func perUnit(key, value, unit string, n uint32) *rlsconf.RateLimitDescriptor {
	return &rlsconf.RateLimitDescriptor{Key: key, Value: value, RateLimit: &rlsconf.RateLimitPolicy{
		RequestsPerUnit: n, Unit: rlsconf.RateLimitUnit(rlsconf.RateLimitUnit_value[strings.ToUpper(unit)]),
	}}
}

func level(key, value string, descriptors ...*rlsconf.RateLimitDescriptor) *rlsconf.RateLimitDescriptor {
	return &rlsconf.RateLimitDescriptor{Key: key, Value: value, Descriptors: descriptors}
}

// entry is a descriptor of alternating keys and values.
func entry(keysAndValues ...string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for i := 0; i < len(keysAndValues); i += 2 {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: keysAndValues[i], Value: keysAndValues[i+1]})
	}
	return d
}

func ask(domain string, descriptors ...*commonv3.RateLimitDescriptor) *rlsv3.RateLimitRequest {
	return &rlsv3.RateLimitRequest{Domain: domain, Descriptors: descriptors}
}

func answer(e *embedded.Engine, r *rlsv3.RateLimitRequest) *rlsv3.RateLimitResponse {
	GinkgoHelper()
	response, err := e.ShouldRateLimit(context.Background(), r)
	Expect(err).NotTo(HaveOccurred())
	return response
}

// passes returns, for each of n consecutive requests, whether it is allowed: "1"
// or "0".
func passes(e *embedded.Engine, n int, r *rlsv3.RateLimitRequest) string {
	GinkgoHelper()
	var b strings.Builder
	for range n {
		b.WriteString(map[bool]string{true: "1", false: "0"}[answer(e, r).GetOverallCode() == rlsv3.RateLimitResponse_OK])
	}
	return b.String()
}
