package keeper_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"

	"github.com/gatehouse-gateway/gatehouse/envoy"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// gateway is a control plane, its configuration, and an Envoy.
type gateway struct {
	builder  *snapshot.Builder
	port     int
	xds      string
	revision int64
	server   *server.Server
	grpc     *grpc.Server
	served   chan error
	envoy    *testkit.Envoy
}

func newGateway() *gateway {
	GinkgoHelper()
	g := &gateway{port: must(testkit.FreePort()), xds: "127.0.0.1:0"}
	g.builder = snapshot.NewBuilder(heads())
	g.builder.SetListeners([]*snapshot.Resource{listener(g.port)}, snapshot.Named{})
	g.start()
	return g
}

// start starts the control plane, at the address that it had before.
func (g *gateway) start() {
	GinkgoHelper()
	log := slog.New(slog.NewTextHandler(GinkgoWriter, &slog.HandlerOptions{Level: slog.LevelWarn}))
	g.server = server.New(server.Options{Status: status.NewRegistry(), Log: log})
	g.grpc = g.server.GRPC()
	l := must((&net.ListenConfig{}).Listen(context.Background(), "tcp", g.xds))
	g.xds, g.served = l.Addr().String(), make(chan error, 1)
	serving, done := g.grpc, g.served
	go func() { done <- serving.Serve(l) }()
	DeferCleanup(g.stop)
}

// stop stops the control plane; a second call does nothing.
func (g *gateway) stop() {
	GinkgoHelper()
	if g.grpc == nil {
		return
	}
	g.grpc.Stop()
	Expect(<-g.served).To(Succeed())
	g.grpc = nil
}

// run starts the Envoy.
func (g *gateway) run() {
	GinkgoHelper()
	dir := must(os.MkdirTemp("", "gh"))
	DeferCleanup(os.RemoveAll, dir)
	bootstrap := must(envoy.Bootstrap(envoy.Params{Node: "gw", XDSAddr: g.xds, AdminSocket: filepath.Join(dir, "a")}))
	g.envoy = must(testkit.RunEnvoy(limit(), dir, string(bootstrap)))
	DeferCleanup(func() { _ = g.envoy.Kill() })
}

// publish serves what the builder has.
func (g *gateway) publish() {
	g.revision++
	g.server.Publish(g.revision, map[string]*snapshot.Snapshot{"gw": g.builder.Snapshot(g.revision)})
}

// apply publishes, and returns when the Envoy has everything.
func (g *gateway) apply() {
	GinkgoHelper()
	g.publish()
	lags := g.server.Wait(limit(), map[string]plan.Goal{"gw": {Revision: g.revision, All: true}})
	g.expectAlive()
	Expect(lags).To(BeEmpty())
}

// expectAlive checks that the Envoy has not died.
func (g *gateway) expectAlive() {
	GinkgoHelper()
	select {
	case <-g.envoy.Exited():
		Fail("Envoy has died: " + g.envoy.Stderr.String())
	default:
	}
}
