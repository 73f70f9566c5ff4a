package ratelimit_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// wire counts the messages on the streams of a server: the updates that it sends, and the
// refusals that it receives.
type wire struct {
	mu             sync.Mutex
	updates, nacks int
}

func (w *wire) count() (updates, nacks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.updates, w.nacks
}

func (w *wire) intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, &watched{stream, w})
}

type watched struct {
	grpc.ServerStream
	wire *wire
}

func (s *watched) SendMsg(m any) error {
	s.wire.mu.Lock()
	s.wire.updates++
	s.wire.mu.Unlock()
	return s.ServerStream.SendMsg(m)
}

func (s *watched) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if r, ok := m.(*discoveryv3.DiscoveryRequest); ok && err == nil && r.GetErrorDetail() != nil {
		s.wire.mu.Lock()
		s.wire.nacks++
		s.wire.mu.Unlock()
	}
	return err
}

// serveOwn runs the program's own xDS server until the end of the spec.
func serveOwn(s *server.Server, w *wire) (addr string) {
	GinkgoHelper()
	g := s.GRPC(grpc.ChainStreamInterceptor(w.intercept))
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	done := make(chan error)
	go func() { done <- g.Serve(l) }()
	DeferCleanup(func() {
		g.Stop()
		Expect(<-done).To(Succeed())
	})
	return l.Addr().String()
}

// perWeek returns a configuration of one limit.
func perWeek(name, domain string, requests uint32) *rlsconf.RateLimitConfig {
	return &rlsconf.RateLimitConfig{Name: name, Domain: domain, Descriptors: []*rlsconf.RateLimitDescriptor{{
		Key: "k", RateLimit: &rlsconf.RateLimitPolicy{Unit: rlsconf.RateLimitUnit_WEEK, RequestsPerUnit: requests},
	}}}
}

var _ = Describe("A configuration that the stock engine refuses", func() {
	It("is sent once, and the previous one remains in use", func(ctx SpecContext) {
		watchGoroutines()
		w := &wire{}
		s := server.New(server.Options{Status: status.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		publish := func(revision int64, configs ...*rlsconf.RateLimitConfig) {
			GinkgoHelper()
			Expect(s.PublishRateLimits(revision, configs)).To(Succeed())
		}
		publish(1, perWeek("1", "1/edge", 3))
		_, stock := startStock(ctx, serveOwn(s, w))
		limitNow := func() uint32 {
			GinkgoHelper()
			a, err := stock.ShouldRateLimit(ctx, &ratelimitv3.RateLimitRequest{Domain: "1/edge", Descriptors: []*commonv3.RateLimitDescriptor{
				{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}}},
			}})
			Expect(err).NotTo(HaveOccurred())
			return a.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit()
		}
		Expect(limitNow()).To(BeEquivalentTo(3))

		const refusals = 3
		began, _ := w.count()
		for i := range uint32(refusals) {
			revision := int64(2 + i)
			publish(revision, perWeek("1", "1/edge", 10+i), perWeek("2", "1/edge", 1))
			lags := s.WaitRateLimits(ctx, revision)
			Expect(lags).To(HaveLen(1))
			Expect(lags[0].Message).To(ContainSubstring("duplicate domain '1/edge' in config file"))
		}
		// A control plane that answers a refusal with the same response receives 1,300 of
		// them in this time.
		Consistently(func() int { updates, _ := w.count(); return updates - began }, time.Second).Should(Equal(refusals))
		Expect(limitNow()).To(BeEquivalentTo(3))
		updates, nacks := w.count()
		Expect(nacks).To(Equal(refusals))

		publish(9, perWeek("1", "1/edge", 4))
		Expect(s.WaitRateLimits(ctx, 9)).To(BeEmpty())
		// The engine acknowledges while another of its goroutines applies the configuration.
		Eventually(ctx, limitNow).Should(BeEquivalentTo(4))
		AddReportEntry("refusals", fmt.Sprintf("%d configurations refused: %d updates sent, %d refusals", refusals, updates-began, nacks))
	}, SpecTimeout(time.Minute))
})
