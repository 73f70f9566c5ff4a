package testkit_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("Redis", func() {
	It("is killed and comes back empty, is frozen and continues", func(ctx SpecContext) {
		r, err := testkit.StartRedis(ctx, GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(r.Kill()).To(Succeed()) })
		Expect(redis(r, "SET k v")).To(Equal("+OK"))
		Expect(redis(r, "DBSIZE")).To(Equal(":1"))
		Expect(r.Kill()).To(Succeed())
		Expect(redis(r, "PING")).Error().To(MatchError(ContainSubstring("connection refused")))
		Expect(r.Restart(ctx)).To(Succeed())
		Expect(redis(r, "DBSIZE")).To(Equal(":0"))

		Expect(r.Freeze()).To(Succeed())
		Expect(redis(r, "PING")).Error().To(MatchError(ContainSubstring("i/o timeout")))
		Expect(r.Thaw()).To(Succeed())
		Expect(redis(r, "PING")).To(Equal("+PONG"))
		Expect(r.Stop(ctx)).To(BeZero())
	}, SpecTimeout(time.Minute))
})

// redis returns the first line of the answer to a command; it waits at most two seconds.
func redis(r *testkit.Redis, command string) (string, error) {
	conn, err := testkit.Bounded(net.Dial("tcp", r.Addr)) //nolint:noctx // on loopback
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // nothing to lose
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", err
	}
	answer := make([]byte, 100)
	n, err := conn.Read(answer)
	return strings.TrimSpace(string(answer[:n])), err
}

var _ = Describe("The rate-limit engine", func() {
	var (
		plane *ratelimitPlane
		store *testkit.Redis
	)
	BeforeEach(func(ctx SpecContext) {
		plane = startRatelimitPlane()
		var err error
		store, err = testkit.StartRedis(ctx, GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(store.Kill()).To(Succeed()) })
	}, NodeTimeout(time.Minute))

	start := func(ctx context.Context) *testkit.Ratelimit {
		GinkgoHelper()
		r, err := testkit.StartRatelimit(ctx, testkit.RatelimitOptions{XDSAddr: plane.addr, RedisAddr: store.Addr})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(r.Kill()).To(Succeed()) })
		return r
	}

	It("counts to the limit from the control plane, and again after Redis lost its counters", func(ctx SpecContext) {
		plane.serve("v1", domain("shop", rate("remote_address", 5)))
		r := start(ctx)
		call := dialRatelimit(r.Addr)
		for n := range 5 {
			Expect(call(ctx, "shop", "remote_address", "10.0.0.1")).To(Equal(ratelimitv3.RateLimitResponse_OK), "call %d", n+1)
		}
		Expect(call(ctx, "shop", "remote_address", "10.0.0.1")).To(Equal(ratelimitv3.RateLimitResponse_OVER_LIMIT))
		Expect(call(ctx, "shop", "remote_address", "10.0.0.2")).To(Equal(ratelimitv3.RateLimitResponse_OK))
		Expect(call(ctx, "other", "remote_address", "10.0.0.1")).To(Equal(ratelimitv3.RateLimitResponse_OK))
		Eventually(get).WithArguments(r.Metrics, "/metrics").Should(And(
			MatchRegexp(`(?m)^ratelimit_service_rate_limit_total_hits\{domain="shop",key1="remote_address"\} 7$`),
			MatchRegexp(`(?m)^ratelimit_service_rate_limit_over_limit\{domain="shop",key1="remote_address"\} 1$`)))
		Expect(get(r.Debug, "/rlconfig")).To(HavePrefix("shop.remote_address: unit=DAY requests_per_unit=5"))

		Expect(store.Kill()).To(Succeed())
		Expect(store.Restart(ctx)).To(Succeed())
		Expect(r.WaitReady(ctx)).To(Succeed())
		Eventually(func() (ratelimitv3.RateLimitResponse_Code, error) { // the first may use a connection that is closed
			return call(ctx, "shop", "remote_address", "10.0.0.1")
		}).Should(Equal(ratelimitv3.RateLimitResponse_OK))
	}, SpecTimeout(time.Minute))

	It("refuses an invalid configuration as a whole, reports why, and keeps the old one", func(ctx SpecContext) {
		good := domain("shop", rate("k", 1))
		plane.serve("v1", good)
		r := start(ctx)
		call := dialRatelimit(r.Addr)
		Expect(call(ctx, "shop", "k", "a")).To(Equal(ratelimitv3.RateLimitResponse_OK))

		// The cache would answer every refusal with the same response: restore what it
		// accepted, under its version.
		plane.onNack = func() { plane.serve("v1", good) }
		second := domain("shop", rate("j", 1))
		second.Name = "second"
		plane.serve("v2", domain("shop", rate("k", 9)), second)
		Eventually(plane.nacks).Should(Receive(ContainSubstring("duplicate domain 'shop' in config file")))
		Consistently(plane.nacks, "300ms").Should(WithTransform(func(c chan string) int { return len(c) }, BeNumerically("<", 5)))
		Expect(call(ctx, "shop", "k", "a")).To(Equal(ratelimitv3.RateLimitResponse_OVER_LIMIT))

		plane.serve("v3", domain("shop", rate("k", 2)))
		Eventually(get).WithArguments(r.Debug, "/rlconfig").Should(ContainSubstring("requests_per_unit=2"))
	}, SpecTimeout(time.Minute))

	It("is ready without any limits, and accepts more than 4 MiB of them", func(ctx SpecContext) {
		plane.serve("v1")
		r := start(ctx)
		Expect(dialRatelimit(r.Addr)(ctx, "shop", "k", "a")).To(Equal(ratelimitv3.RateLimitResponse_OK))

		many := domain("shop", rate("last", 1))
		for i := range 6000 { // without a rate, which is faster
			many.Descriptors = append(many.Descriptors, &rlsconf.RateLimitDescriptor{Key: "k", Value: fmt.Sprintf("%01000d", i)})
		}
		plane.serve("v2", many)
		Eventually(get).WithArguments(r.Debug, "/rlconfig").Should(ContainSubstring("shop.last: unit=DAY"))
	}, SpecTimeout(time.Minute))

	It("exits if Redis is missing at its start, and comes back at the same addresses", func(ctx SpecContext) {
		plane.serve("v1", domain("shop", rate("k", 5)))
		Expect(store.Kill()).To(Succeed())
		r, err := testkit.SpawnRatelimit(testkit.RatelimitOptions{XDSAddr: plane.addr, RedisAddr: store.Addr})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Wait(ctx)).To(Equal(2))
		Expect(r.Stderr.String()).To(ContainSubstring("connection refused"))

		Expect(store.Restart(ctx)).To(Succeed())
		Expect(r.Respawn()).To(Succeed())
		DeferCleanup(func() { Expect(r.Kill()).To(Succeed()) })
		Expect(r.WaitReady(ctx)).To(Succeed())
		Expect(dialRatelimit(r.Addr)(ctx, "shop", "k", "a")).To(Equal(ratelimitv3.RateLimitResponse_OK))
	}, SpecTimeout(time.Minute))

	It("has the version whose loader the checks use", func() {
		version := regexp.MustCompile(`(?m)^\s*github\.com/envoyproxy/ratelimit (\S+)`)
		find := func(file string) string {
			GinkgoHelper()
			text, err := os.ReadFile(file) //nolint:gosec // named below
			Expect(err).NotTo(HaveOccurred())
			m := version.FindSubmatch(text)
			Expect(m).NotTo(BeNil(), "%s does not name the engine", file)
			return string(m[1])
		}
		Expect(find("../../ratelimit/go.mod")).To(Equal(find("../../go.mod")))
	})
})

// ratelimitPlane is a control plane that sends an engine its limits.
type ratelimitPlane struct {
	addr string
	// nacks are the reasons of refusals.
	nacks chan string
	// onNack is called for each refusal; set it before the first.
	onNack func()

	cache cachev3.SnapshotCache
}

func startRatelimitPlane() *ratelimitPlane {
	GinkgoHelper()
	p := &ratelimitPlane{nacks: make(chan string, 1000), onNack: func() {}, cache: cachev3.NewSnapshotCache(true, cachev3.IDHash{}, nil)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	p.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, serverv3.NewServer(ctx, p.cache, serverv3.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
			if r.GetErrorDetail() != nil {
				select {
				case p.nacks <- r.GetErrorDetail().GetMessage():
				default: // there are too many, and the count exceeds every bound already
				}
				p.onNack()
			}
			return nil
		},
	}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	DeferCleanup(func() {
		cancel()
		server.Stop()
		Expect(<-served).NotTo(HaveOccurred())
	})
	return p
}

func (p *ratelimitPlane) serve(version string, configs ...*rlsconf.RateLimitConfig) {
	GinkgoHelper()
	resources := make([]types.Resource, len(configs))
	for i, c := range configs {
		resources[i] = c
	}
	snapshot, err := cachev3.NewSnapshot(version, map[resourcev3.Type][]types.Resource{resourcev3.RateLimitConfigType: resources})
	Expect(err).NotTo(HaveOccurred())
	Expect(p.cache.SetSnapshot(context.Background(), "ratelimit", snapshot)).To(Succeed())
}

func domain(name string, descriptors ...*rlsconf.RateLimitDescriptor) *rlsconf.RateLimitConfig {
	return &rlsconf.RateLimitConfig{Name: name, Domain: name, Descriptors: descriptors}
}

// rate returns a limit per day: no window ends during a test, except at midnight.
func rate(key string, perDay uint32) *rlsconf.RateLimitDescriptor {
	return &rlsconf.RateLimitDescriptor{Key: key, RateLimit: &rlsconf.RateLimitPolicy{Unit: rlsconf.RateLimitUnit_DAY, RequestsPerUnit: perDay}}
}

// dialRatelimit returns a function that asks an engine about one descriptor with one
// entry.
func dialRatelimit(addr string) func(ctx context.Context, domain, key, value string) (ratelimitv3.RateLimitResponse_Code, error) {
	GinkgoHelper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	client := ratelimitv3.NewRateLimitServiceClient(conn)
	return func(ctx context.Context, domain, key, value string) (ratelimitv3.RateLimitResponse_Code, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		a, err := client.ShouldRateLimit(ctx, &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: []*commonv3.RateLimitDescriptor{
			{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
		}})
		return a.GetOverallCode(), err
	}
}

func get(api testkit.API, path string) (string, error) {
	a, err := api.Get(context.Background(), path)
	return a.Body, err
}
