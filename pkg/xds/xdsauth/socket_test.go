package xdsauth_test

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/xdsauth"
)

// plainBearer is a token of a client without TLS.
type plainBearer string

func (b plainBearer) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	return bearer(b).GetRequestMetadata(ctx, uri...)
}

func (plainBearer) RequireTransportSecurity() bool { return false }

var _ = Describe("A client on a Unix socket", func() {
	DescribeTable("stands for one proxy", func(open bool) {
		log := slog.New(slog.DiscardHandler)
		s := server.New(server.Options{
			Status: status.NewRegistry(), Log: log, Refusals: server.NewRefusals(log),
			Authenticate: xdsauth.New(xdsauth.Options{Open: open, Tokens: tokens{"ghx_other": {Name: "laptop", Proxy: "other", Revoked: make(chan struct{})}}}).Authenticate,
		})
		s.Publish(1, map[string]*snapshot.Snapshot{})
		g := s.GRPC(grpc.Creds(xdsauth.NewCredentials(nil, "edge")))
		path := filepath.Join(GinkgoT().TempDir(), "xds")
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
		Expect(err).NotTo(HaveOccurred())
		done := make(chan error, 1)
		go func() { done <- g.Serve(l) }()
		DeferCleanup(func() {
			g.Stop()
			Eventually(done).Should(Receive())
		})
		dial := func(node string, options ...grpc.DialOption) (*testkit.XDSClient, <-chan struct{}) {
			GinkgoHelper()
			served := make(chan struct{}, 100)
			x, err := testkit.DialXDS("unix:"+path, node, func(r *testkit.XDSResponse) { _ = r.Ack(); served <- struct{}{} }, options...)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(x.Close)
			_ = x.Subscribe(snapshot.ClusterType) // the end of the stream shows what is wrong
			return x, served
		}
		_, served := dial("edge")
		Eventually(served).Should(Receive())
		for _, node := range []string{"other", "edge2", "EDGE"} {
			x, _ := dial(node)
			Expect(ending(x)).To(HavePrefix(`PermissionDenied: socket of this program may not use the node id "` + node + `"`))
		}
		By("whatever token it has")
		x, _ := dial("other", grpc.WithPerRPCCredentials(plainBearer("ghx_other")))
		Expect(ending(x)).To(ContainSubstring(`may not use the node id "other"`))
		x, _ = dial("edge", grpc.WithPerRPCCredentials(plainBearer("ghx_wrong")))
		Expect(ending(x)).To(HavePrefix("Unauthenticated: the token is not valid here"))
	},
		Entry("where the port asks for a proof", false),
		Entry("where it asks for none", true),
	)
})
