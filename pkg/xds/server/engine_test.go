package server_test

import (
	"context"
	"log/slog"
	"net"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

var _ = Describe("a rate-limit engine", func() {
	var (
		s        *server.Server
		registry *status.Registry
		addr     string
	)
	BeforeEach(func() {
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
		registry = status.NewRegistry()
		s = server.New(server.Options{Status: registry, Log: slog.New(slog.DiscardHandler)})
		addr = serveGRPC(s.GRPC())
	})
	publish := func(revision int64, domains ...string) {
		GinkgoHelper()
		var configs []*rlsconf.RateLimitConfig
		for _, d := range domains {
			configs = append(configs, &rlsconf.RateLimitConfig{Name: d, Domain: d})
		}
		Expect(s.PublishRateLimits(revision, configs)).To(Succeed())
	}
	wait := func(ctx context.Context, revision int64) chan []status.Lag {
		answer := make(chan []status.Lag, 1)
		go func() { answer <- s.WaitRateLimits(ctx, revision) }()
		return answer
	}
	answers := func() status.Answers {
		for _, e := range registry.Engines() {
			return e.Types[server.RateLimitType]
		}
		return status.Answers{}
	}

	It("hears nothing before the first publication, and then even an empty set of limits", func() {
		e := dialEngine(addr, "")
		e.quiet()
		publish(1)
		Expect(e.next().GetResources()).To(BeEmpty())
		e.ack()
		Eventually(func() int64 { return answers().Acked.Revision }).Should(Equal(int64(1)))
		Expect(registry.Envoys()).To(BeEmpty())
	})

	It("gets one response for each content, whatever the revision", func(ctx SpecContext) {
		publish(1, "a")
		e := dialEngine(addr, "")
		Expect(e.next().GetResources()).To(HaveLen(1))
		e.ack()
		publish(2, "a")
		e.quiet()
		Expect(s.WaitRateLimits(ctx, 2)).To(BeEmpty())
		publish(3, "a", "b")
		waiting := wait(ctx, 3)
		Expect(e.next().GetResources()).To(HaveLen(2))
		Expect(waiting).NotTo(Receive())
		e.ack()
		Eventually(waiting).Should(Receive(BeEmpty()))
		Expect(answers().Acked.Revision).To(Equal(int64(3)))
	}, SpecTimeout(time.Minute))

	It("gets the same bytes again if they are split into limits differently", func() {
		publish(1, "a")
		e := dialEngine(addr, "")
		Expect(e.next().GetResources()).To(HaveLen(1))
		e.ack()
		// The concatenated bytes of the two equal those of the one.
		Expect(s.PublishRateLimits(2, []*rlsconf.RateLimitConfig{{Name: "a"}, {Domain: "a"}})).To(Succeed())
		Expect(e.next().GetResources()).To(HaveLen(2))
	})

	It("has the last configuration that it answered, and ignores repeated answers", func() {
		publish(1, "a")
		e := dialEngine(addr, "")
		first := e.next()
		e.ack()
		publish(2, "b")
		second := e.next()
		e.last = first
		e.ack()
		ctx, cancel := context.WithCancel(context.Background())
		waiting := wait(ctx, 2)
		Consistently(waiting).WithTimeout(50 * time.Millisecond).ShouldNot(Receive())
		cancel()
		Eventually(waiting).Should(Receive(ConsistOf(HaveField("Reason", status.Slow))))
		e.last = second
		e.ack()
		Eventually(wait(context.Background(), 2)).Should(Receive(BeEmpty()))
	})

	It("that refuses gets nothing until the content changes", func(ctx SpecContext) {
		publish(1, "a")
		e := dialEngine(addr, "")
		e.next()
		e.ack()
		publish(2, "bad")
		waiting := wait(ctx, 2)
		e.next()
		e.nack("no such unit")
		Eventually(waiting).Should(Receive(ConsistOf(And(
			HaveField("Reason", status.Refused), HaveField("Message", ContainSubstring("no such unit"))))))
		publish(3, "bad")
		e.quiet()
		Expect(answers().Rejected.Revision).To(Equal(int64(2)))
		Expect(answers().Acked.Revision).To(Equal(int64(1)))

		publish(4, "a") // the version that it has
		Eventually(func() int64 { return answers().Acked.Revision }).Should(Equal(int64(4)))
		publish(5, "bad")
		Eventually(func() int64 { return answers().Rejected.Revision }).Should(Equal(int64(5)))
		e.quiet()
		publish(6, "good")
		Expect(e.next().GetResources()).To(HaveLen(1))
	}, SpecTimeout(time.Minute))

	It("that comes back with the current configuration gets nothing", func() {
		publish(1, "a")
		first := dialEngine(addr, "")
		version := first.next().GetVersionInfo()
		first.ack()
		first.close()
		again := dialEngine(addr, version)
		again.quiet()
		Eventually(func() int64 { return answers().Acked.Revision }).Should(Equal(int64(1)))
		publish(2, "b")
		Expect(again.next().GetVersionInfo()).NotTo(Equal(version))
	})

	It("that comes back with a configuration it refused gets it once more", func() {
		publish(1, "bad")
		first := dialEngine(addr, "")
		version := first.next().GetVersionInfo()
		first.nack("no")
		Eventually(func() string { return answers().Rejected.Text }).Should(Equal("no"))
		first.close()
		again := dialEngine(addr, version)
		Expect(again.next().GetVersionInfo()).To(Equal(version))
		again.nack("no")
		again.quiet()
	})

	It("that is not connected is awaited while it may come back; otherwise a wait for its limits reports it immediately", func() {
		publish(1, "a") // it existed before the program, so an engine may too
		ctx, cancel := context.WithCancel(context.Background())
		waiting := wait(ctx, 1)
		Consistently(waiting).WithTimeout(50 * time.Millisecond).ShouldNot(Receive())
		cancel()
		Eventually(waiting).Should(Receive(ConsistOf(HaveField("Reason", status.NotConnected))))
		Eventually(wait(context.Background(), 1)).Should(Receive(ConsistOf(HaveField("Reason", status.NotConnected))))

		first := dialEngine(addr, "")
		first.next()
		first.ack()
		first.close()
		Eventually(registry.Engines).Should(BeEmpty())
		again := wait(context.Background(), 1)
		Consistently(again).WithTimeout(50 * time.Millisecond).ShouldNot(Receive())
		second := dialEngine(addr, "")
		second.next()
		second.ack()
		Eventually(again).Should(Receive(BeEmpty()))
	})

	It("is the only one that may use the older protocol", func() {
		for _, r := range []*discoveryv3.DiscoveryRequest{
			{Node: &corev3.Node{Id: "gw"}, TypeUrl: server.RateLimitType},
			{Node: &corev3.Node{Id: "ratelimit"}, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"},
		} {
			e := connectEngine(addr)
			Expect(e.rpc.Send(r)).To(Succeed())
			ended := make(chan codes.Code, 1)
			go func() {
				_, err := e.rpc.Recv()
				ended <- grpcstatus.Code(err)
			}()
			Eventually(ended).Should(Receive(Equal(codes.Unimplemented)))
		}
		Expect(registry.Engines()).To(BeEmpty())
	})
})

// serveGRPC serves until the end of the spec.
func serveGRPC(g *grpc.Server) string {
	GinkgoHelper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	done := make(chan error, 1)
	go func() { done <- g.Serve(l) }()
	DeferCleanup(func(ctx SpecContext) {
		g.Stop()
		Eventually(done).WithContext(ctx).Should(Receive(Succeed()))
	}, NodeTimeout(time.Minute))
	return l.Addr().String()
}

// fakeEngine behaves like the upstream engine: every request has the version in
// use and the nonce of the last response.
type fakeEngine struct {
	conn      *grpc.ClientConn
	rpc       discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	responses chan *discoveryv3.DiscoveryResponse
	version   string
	last      *discoveryv3.DiscoveryResponse
}

func connectEngine(addr string) *fakeEngine {
	GinkgoHelper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	e := &fakeEngine{conn: conn, responses: make(chan *discoveryv3.DiscoveryResponse, 100)}
	DeferCleanup(e.close)
	e.rpc, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(context.Background())
	Expect(err).NotTo(HaveOccurred())
	return e
}

// dialEngine connects an engine with a version, or with none if it is empty.
func dialEngine(addr, version string) *fakeEngine {
	GinkgoHelper()
	e := connectEngine(addr)
	e.version = version
	if version != "" {
		e.last = &discoveryv3.DiscoveryResponse{Nonce: "of a stream that is gone"}
	}
	e.send("")
	go func() {
		for {
			r, err := e.rpc.Recv()
			if err != nil {
				return
			}
			e.responses <- r
		}
	}()
	return e
}

func (e *fakeEngine) send(refusal string) {
	GinkgoHelper()
	r := &discoveryv3.DiscoveryRequest{
		Node: &corev3.Node{Id: "ratelimit"}, TypeUrl: server.RateLimitType, VersionInfo: e.version, ResponseNonce: e.last.GetNonce(),
	}
	if refusal != "" {
		r.ErrorDetail = &rpcstatus.Status{Message: refusal}
	}
	Expect(e.rpc.Send(r)).To(Succeed())
}

func (e *fakeEngine) next() *discoveryv3.DiscoveryResponse {
	GinkgoHelper()
	Eventually(e.responses).Should(Receive(&e.last))
	return e.last
}

func (e *fakeEngine) ack() {
	GinkgoHelper()
	e.version = e.last.GetVersionInfo()
	e.send("")
}

func (e *fakeEngine) nack(why string) {
	GinkgoHelper()
	e.send(why)
}

// quiet checks that nothing more arrives.
func (e *fakeEngine) quiet() {
	GinkgoHelper()
	Consistently(e.responses).WithTimeout(150 * time.Millisecond).ShouldNot(Receive())
}

func (e *fakeEngine) close() { _ = e.conn.Close() } // it may be closed
