package endpoints_test

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/envoy"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

func TestEndpoints(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(2 * time.Millisecond)
	RunSpecs(t, "endpoints and a real Envoy")
}

// limit bounds one call.
func limit() context.Context {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	DeferCleanup(cancel)
	return ctx
}

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

// source is a pipeline.Source in memory.
type source struct {
	changed chan struct{}

	mu       sync.Mutex
	revision int64
	pending  model.Change
}

// Changed implements pipeline.Source.
func (s *source) Changed() <-chan struct{} { return s.changed }

// Since implements pipeline.Source.
func (s *source) Since(_ context.Context, at model.Mark) (model.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change := s.pending
	change.Revision, change.Full = s.revision, at.Revision == 0
	s.pending = model.Change{}
	return change, nil
}

// write adds objects, with their endpoints.
func (s *source) write(endpoints map[model.Key]*model.Endpoints, objects ...model.Object) {
	s.mu.Lock()
	if len(objects) > 0 {
		s.revision++
	}
	for _, o := range objects {
		s.pending.Entries = append(s.pending.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	if s.pending.Endpoints == nil {
		s.pending.Endpoints = map[model.Key]*model.Endpoints{}
	}
	maps.Copy(s.pending.Endpoints, endpoints)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// gateway is a control plane with its source, and an Envoy.
type gateway struct {
	*source
	port   int
	ads    *server.Server
	loop   *pipeline.Loop
	status *status.Registry
}

// newGateway runs both for a proxy with these objects.
func newGateway(endpoints map[model.Key]*model.Endpoints, objects ...model.Object) *gateway {
	GinkgoHelper()
	g := &gateway{source: &source{changed: make(chan struct{}, 1)}, port: must(testkit.FreePort()), status: status.NewRegistry()}
	proxy := model.NewProxy()
	proxy.ID, proxy.Name, proxy.ListenIP, proxy.HTTPPort = 1, "gw", "127.0.0.1", g.port
	g.write(endpoints, append(objects, proxy)...)
	log := slog.New(slog.NewTextHandler(GinkgoWriter, &slog.HandlerOptions{Level: slog.LevelWarn}))
	g.ads = server.New(server.Options{Status: g.status, Log: log})
	g.loop = pipeline.NewLoop(pipeline.Options{Source: g.source, Publisher: g.ads, Status: g.status, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	looped, served := make(chan error, 1), make(chan error, 1)
	go func() { looped <- g.loop.Run(ctx) }()
	rpc := g.ads.GRPC()
	l := must((&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"))
	go func() { served <- rpc.Serve(l) }()
	DeferCleanup(func() {
		rpc.Stop()
		cancel()
		Expect(<-served).To(Succeed())
		Expect(<-looped).To(Succeed())
	})
	dir := must(os.MkdirTemp("", "gh"))
	DeferCleanup(os.RemoveAll, dir)
	bootstrap := must(envoy.Bootstrap(envoy.Params{Node: "gw", XDSAddr: l.Addr().String(), AdminSocket: filepath.Join(dir, "a")}))
	e := must(testkit.RunEnvoy(limit(), dir, string(bootstrap)))
	DeferCleanup(func() { _ = e.Kill() })
	g.settle()
	return g
}

// settle returns when the Envoy has everything that was written.
func (g *gateway) settle() {
	GinkgoHelper()
	must(g.loop.Reach(limit(), nil))
	Expect(g.ads.Wait(limit(), map[string]plan.Goal{"gw": {Revision: g.ads.Revision(), All: true}})).To(BeEmpty())
}

// assigned returns when the Envoy has answered the assignment of an upstream that should be
// the last one.
func (g *gateway) assigned(upstream string) {
	GinkgoHelper()
	must(g.loop.Reach(limit(), nil))
	for _, r := range g.ads.Snapshot("gw").Endpoints {
		if r.Name == upstream {
			Eventually(func() []status.Resource { return g.status.Envoys()[0].Types[snapshot.EndpointType].Acked.Resources }).
				Should(ContainElement(status.Resource{Name: r.Name, Version: r.Version}))
		}
	}
}

// assign replaces the endpoints of an upstream.
func (g *gateway) assign(upstream string, list ...model.Endpoint) {
	g.write(map[model.Key]*model.Endpoints{model.UpstreamKey(upstream): model.NewEndpoints(list...)})
}
