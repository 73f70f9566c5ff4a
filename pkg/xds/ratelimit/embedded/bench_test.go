package embedded_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/embedded"

	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
)

// BenchmarkShouldRateLimit measures a request with one descriptor: for an
// address within its limit, for one over it, and for addresses that are all
// new.
func BenchmarkShouldRateLimit(b *testing.B) {
	config := []*rlsconf.RateLimitConfig{domainOf("1/edge", perUnit("remote_address", "", "hour", 1<<31), perUnit("x", "", "hour", 1))}
	engine := embedded.New(embedded.Options{})
	if err := engine.Load(config); err != nil {
		b.Fatal(err)
	}
	run := func(name, key string, value func(i int) string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			request := ask("1/edge", entry(key, ""))
			for i := range b.N {
				request.Descriptors[0].Entries[0].Value = value(i)
				if _, err := engine.ShouldRateLimit(context.Background(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("within", "remote_address", func(int) string { return "10.0.0.1" })
	run("over", "x", func(int) string { return "10.0.0.1" })
	run("new", "remote_address", strconv.Itoa)
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				_, _ = engine.ShouldRateLimit(context.Background(), ask("1/edge", entry("remote_address", strconv.Itoa(i%10_000))))
			}
		})
	})
}

// BenchmarkLoad measures 1,000 domains of 20 limits each: all new, and with one
// of them changed.
func BenchmarkLoad(b *testing.B) {
	var configs []*rlsconf.RateLimitConfig
	for i := range 1000 {
		c := domainOf(strconv.Itoa(i) + "/edge")
		for j := range 20 {
			c.Descriptors = append(c.Descriptors, perUnit("k", strconv.Itoa(j), "second", 5))
		}
		configs = append(configs, c)
	}
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if err := embedded.New(embedded.Options{}).Load(configs); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		engine := embedded.New(embedded.Options{})
		for i := range b.N {
			configs[500] = domainOf("500/edge", perUnit("k", "", "second", uint32(i)))
			if err := engine.Load(configs); err != nil {
				b.Fatal(err)
			}
		}
	})
}
