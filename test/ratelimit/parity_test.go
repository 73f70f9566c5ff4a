package ratelimit_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/embedded"
)

func TestRatelimit(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "Rate-limit engines")
}

// rounds is how many requests are compared: GATEHOUSE_TEST_REQUESTS, or a number that
// suits a run with the other tests.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_REQUESTS")); err == nil {
		return n
	}
	return 2000
}

// generator makes configurations and requests that often match each other. Names
// contain no "_", with which the stock engine joins them.
type generator struct {
	*rand.Rand
	units []string
}

func newGenerator(units ...string) generator {
	return generator{rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 6)), units}
}

func (g generator) pick(words ...string) string { return words[g.IntN(len(words))] }
func (g generator) key() string                 { return g.pick("ip", "path", "key", "user") }
func (g generator) value() string               { return g.pick("a", "b", "/api/one", "/api/two") }

func (g generator) rules(depth int) []model.RateLimitRule {
	var list []model.RateLimitRule
	seen := map[string]bool{}
	for range 1 + g.IntN(4) {
		r := model.RateLimitRule{Key: g.key(), ShadowMode: g.IntN(8) == 0}
		if g.IntN(2) == 0 {
			r.Value = g.pick("a", "b", "/api/*", "/api/one")
		}
		if seen[r.Key+" "+r.Value] {
			continue
		}
		seen[r.Key+" "+r.Value] = true
		switch g.IntN(10) {
		case 0:
			r.RateLimit = &model.RateLimit{Unlimited: true}
		case 1: // none
		default:
			r.RateLimit = &model.RateLimit{Unit: g.pick(g.units...), RequestsPerUnit: int64(g.IntN(6))}
		}
		if depth < 3 && g.IntN(2) == 0 {
			r.Descriptors = g.rules(depth + 1)
		}
		list = append(list, r)
	}
	return list
}

func (g generator) request(domains []*limits.Domain) *ratelimitv3.RateLimitRequest {
	r := &ratelimitv3.RateLimitRequest{Domain: domains[g.IntN(len(domains))].Wire()}
	if g.IntN(20) == 0 {
		r.Domain = "nobody"
	}
	if g.IntN(5) == 0 {
		r.HitsAddend = uint32(1 + g.IntN(3)) //nolint:gosec // small
	}
	for range 1 + g.IntN(3) {
		d := &commonv3.RateLimitDescriptor{}
		for range 1 + g.IntN(3) {
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: g.key(), Value: g.value()})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

// verdict returns the part of an answer on which both engines must agree.
func verdict(r *ratelimitv3.RateLimitResponse) string {
	text := r.GetOverallCode().String()
	for _, s := range r.GetStatuses() {
		text += fmt.Sprintf("; %s %d of %d a %s", s.GetCode(), s.GetLimitRemaining(),
			s.GetCurrentLimit().GetRequestsPerUnit(), s.GetCurrentLimit().GetUnit())
	}
	return text
}

// serve serves an engine its configuration until the end of the spec.
func serve(domains []*limits.Domain) (addr string) {
	GinkgoHelper()
	var resources []types.Resource
	for _, c := range ratelimit.Configs(domains) {
		resources = append(resources, c)
	}
	snapshot, err := cachev3.NewSnapshot("1", map[resourcev3.Type][]types.Resource{resourcev3.RateLimitConfigType: resources})
	Expect(err).NotTo(HaveOccurred())
	cache := cachev3.NewSnapshotCache(true, cachev3.IDHash{}, nil)
	Expect(cache.SetSnapshot(context.Background(), "ratelimit", snapshot)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, serverv3.NewServer(ctx, cache, nil))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	done := make(chan error)
	go func() { done <- g.Serve(l) }()
	DeferCleanup(func() {
		cancel()
		g.Stop()
		Expect(<-done).To(Succeed())
	})
	return l.Addr().String()
}

// startStock runs the stock engine with its Redis until the end of the spec.
func startStock(ctx context.Context, xdsAddr string) (*testkit.Ratelimit, ratelimitv3.RateLimitServiceClient) {
	GinkgoHelper()
	redis, err := testkit.StartRedis(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(redis.Kill()).To(Succeed()) })
	stock, err := testkit.StartRatelimit(ctx, testkit.RatelimitOptions{XDSAddr: xdsAddr, RedisAddr: redis.Addr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(stock.Kill()).To(Succeed()) })
	conn, err := grpc.NewClient(stock.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	return stock, ratelimitv3.NewRateLimitServiceClient(conn)
}

// startOwn returns the embedded engine.
func startOwn(domains []*limits.Domain, now func() time.Time) *embedded.Engine {
	GinkgoHelper()
	own := embedded.New(embedded.Options{Log: slog.New(slog.DiscardHandler), Now: now})
	Expect(own.Load(ratelimit.Configs(domains))).To(Succeed())
	return own
}

func watchGoroutines() {
	before := gleak.Goroutines()
	DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
}

var _ = Describe("The embedded engine", func() {
	It("answers like the stock one with Redis", func(ctx SpecContext) {
		watchGoroutines()
		// The end of a window during the test is very unlikely.
		g := newGenerator("day", "week", "month", "year")
		var domains []*limits.Domain
		for i := range 100 {
			d := limits.NewDomain(int64(i), "edge", g.rules(1))
			Expect(ratelimit.Check(d)).To(Succeed())
			domains = append(domains, d)
		}
		_, stock := startStock(ctx, serve(domains))
		own := startOwn(domains, time.Now)

		limited := 0
		for i := range rounds() {
			r := g.request(domains)
			theirs, err := stock.ShouldRateLimit(ctx, r)
			Expect(err).NotTo(HaveOccurred())
			ours, err := own.ShouldRateLimit(ctx, r)
			Expect(err).NotTo(HaveOccurred())
			Expect(verdict(ours)).To(Equal(verdict(theirs)), "request %d: %s", i, r)
			if ours.GetOverallCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT {
				limited++
			}
		}
		Expect(limited).To(BeNumerically(">", rounds()/50), "of all requests")
		AddReportEntry("parity", fmt.Sprintf("%d requests answered alike, %d of them over a limit", rounds(), limited))
	}, SpecTimeout(10*time.Minute))
})
