package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// badges identifies clients by the metadata "badge".
type badges struct {
	known map[string]server.Identity
	// withdrawn ends the identity "edge".
	withdrawn chan struct{}
}

func (b badges) authenticate(ctx context.Context) (server.Identity, error) {
	shown := strings.Join(metadata.ValueFromIncomingContext(ctx, "badge"), ",")
	switch id, ok := b.known[shown]; {
	case ok:
		return id, nil
	case shown == "broken":
		return server.Identity{}, errors.New("the reader of badges is on fire")
	}
	return server.Identity{}, &server.Refusal{Reason: server.ReasonToken, Message: "no badge that is known", Detail: "of the door"}
}

// idleStream is a stream on which nothing is sent.
type idleStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s idleStream) Context() context.Context { return s.ctx }

var _ = Describe("a server that checks the identity of its clients", func() {
	var (
		s         *server.Server
		registry  *status.Registry
		log       *gbytes.Buffer
		refusals  *server.Refusals
		conn      *grpc.ClientConn
		withdrawn chan struct{}
	)
	BeforeEach(func() {
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
		registry, log, withdrawn = status.NewRegistry(), gbytes.NewBuffer(), make(chan struct{})
		at := badges{map[string]server.Identity{
			"edge": {
				Name: "badge edge", Proxies: []string{"edge", "edge.eu"},
				Ended: withdrawn, Why: func() string { return "the badge was withdrawn" },
			},
			"engine": {Name: "badge engine", RateLimits: true},
			"nobody": {Name: "badge nobody"},
		}, withdrawn}
		refusals = server.NewRefusals(slog.New(slog.NewJSONHandler(log, nil)))
		s = server.New(server.Options{Status: registry, Log: slog.New(slog.DiscardHandler), Authenticate: at.authenticate, Refusals: refusals})
		s.Publish(1, map[string]*snapshot.Snapshot{"edge": withCluster(1, "blue"), "other": withCluster(1, "hidden")})
		Expect(s.PublishRateLimits(1, nil)).To(Succeed())
		var err error
		conn, err = grpc.NewClient(serveGRPC(s.GRPC()), grpc.WithTransportCredentials(insecure.NewCredentials()))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
	})
	with := func(badge string) context.Context {
		// A call that never ends would hang.
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		DeferCleanup(cancel)
		return metadata.AppendToOutgoingContext(ctx, "badge", badge)
	}
	// Each opens a stream of its kind under a node id and returns the result. Nil means that
	// something was received.
	delta := func(badge, node string) error {
		GinkgoHelper()
		rpc, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(with(badge))
		Expect(err).NotTo(HaveOccurred())
		_ = rpc.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: snapshot.ClusterType}) // Recv returns the error
		_, err = rpc.Recv()
		return err
	}
	load := func(badge, node string) error {
		GinkgoHelper()
		rpc, err := loadv3.NewLoadReportingServiceClient(conn).StreamLoadStats(with(badge))
		Expect(err).NotTo(HaveOccurred())
		_ = rpc.Send(&loadv3.LoadStatsRequest{Node: &corev3.Node{Id: node}})
		_, err = rpc.Recv()
		return err
	}
	limits := func(badge, node string) error {
		GinkgoHelper()
		rpc, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(with(badge))
		Expect(err).NotTo(HaveOccurred())
		_ = rpc.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: server.RateLimitType})
		_, err = rpc.Recv()
		return err
	}
	fetch := func(badge, method string) error {
		return conn.Invoke(with(badge), method, &discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "other"}}, &discoveryv3.DiscoveryResponse{})
	}

	DescribeTable("opens a stream", func(open *func(badge, node string) error, badge, node string, want codes.Code) {
		err := (*open)(badge, node)
		Expect(grpcstatus.Code(err)).To(Equal(want), "%v", err)
	},
		Entry("of an Envoy of its proxy", &delta, "edge", "edge", codes.OK),
		Entry("of an Envoy of another proxy of its own, which does not exist", &delta, "edge", "edge.eu", codes.OK),
		Entry("not of another proxy", &delta, "edge", "other", codes.PermissionDenied),
		Entry("not of a proxy with the same beginning", &delta, "edge", "edge.e", codes.PermissionDenied),
		Entry("not of a proxy in another letter case", &delta, "edge", "Edge", codes.PermissionDenied),
		Entry("not of a missing proxy", &delta, "edge", "nowhere", codes.PermissionDenied),
		Entry("not of an Envoy with an engine's identity", &delta, "engine", "ratelimit", codes.PermissionDenied),
		Entry("not of an Envoy with an identity without permissions", &delta, "nobody", "edge", codes.PermissionDenied),
		Entry("not of an unknown client", &delta, "forged", "edge", codes.Unauthenticated),
		Entry("not if the identity cannot be determined", &delta, "broken", "edge", codes.Unauthenticated),
		Entry("of load reports of its proxy", &load, "edge", "edge", codes.OK),
		Entry("not of load reports of another proxy", &load, "edge", "other", codes.PermissionDenied),
		Entry("not of load reports of an engine", &load, "engine", "edge", codes.PermissionDenied),
		Entry("not of load reports of an unknown client", &load, "", "edge", codes.Unauthenticated),
		Entry("of a rate-limit engine", &limits, "engine", "ratelimit", codes.OK),
		Entry("not of a rate-limit engine with an Envoy's identity", &limits, "edge", "ratelimit", codes.PermissionDenied),
		Entry("not of a rate-limit engine that is unknown", &limits, "", "ratelimit", codes.Unauthenticated),
		Entry("not of an Envoy with the engine's protocol", &limits, "engine", "edge", codes.Unimplemented),
	)

	DescribeTable("answers a call to a missing method", func(badge, method string, want codes.Code) {
		err := fetch(badge, method)
		Expect(grpcstatus.Code(err)).To(Equal(want), "%v", err)
		Expect(err).NotTo(MatchError(ContainSubstring("hidden")))
	},
		Entry("of an unknown client", "", "/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters", codes.Unauthenticated),
		Entry("of an Envoy", "edge", "/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters", codes.Unimplemented),
		Entry("of an engine", "engine", "/envoy.service.secret.v3.SecretDiscoveryService/FetchSecrets", codes.Unimplemented),
		Entry("of no service, by an unknown client", "", "/x/y", codes.Unauthenticated),
		Entry("of the service, by an unknown client", "", "/envoy.service.discovery.v3.AggregatedDiscoveryService/Other", codes.Unauthenticated),
	)

	It("keeps the node id of the first request", func() {
		rpc, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(with("edge"))
		Expect(err).NotTo(HaveOccurred())
		Expect(rpc.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge"}, TypeUrl: snapshot.ListenerType})).To(Succeed())
		Expect(rpc.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "other"}, TypeUrl: snapshot.ClusterType})).To(Succeed())
		for {
			r, err := rpc.Recv()
			Expect(err).NotTo(HaveOccurred())
			if r.GetTypeUrl() == snapshot.ClusterType {
				Expect(r.GetResources()).To(HaveLen(1))
				Expect(r.GetResources()[0].GetName()).To(Equal("blue"))
				return
			}
		}
	})

	It("ends what an identity has open when its proof expires, and nothing else", func() {
		ads, lrs := discoveryv3.NewAggregatedDiscoveryServiceClient(conn), loadv3.NewLoadReportingServiceClient(conn)
		serving, err := ads.DeltaAggregatedResources(with("edge"))
		Expect(err).NotTo(HaveOccurred())
		Expect(serving.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge"}, TypeUrl: snapshot.ClusterType})).To(Succeed())
		_, err = serving.Recv()
		Expect(err).NotTo(HaveOccurred())
		Expect(registry.Envoys()).To(HaveLen(1))
		Expect(registry.Envoys()[0].Identity).To(Equal("badge edge"))
		silent, err := ads.DeltaAggregatedResources(with("edge"))
		Expect(err).NotTo(HaveOccurred())
		reporting, err := lrs.StreamLoadStats(with("edge"))
		Expect(err).NotTo(HaveOccurred())
		Expect(reporting.Send(&loadv3.LoadStatsRequest{Node: &corev3.Node{Id: "edge"}})).To(Succeed())
		_, err = reporting.Recv()
		Expect(err).NotTo(HaveOccurred())
		engine, err := ads.StreamAggregatedResources(with("engine"))
		Expect(err).NotTo(HaveOccurred())
		Expect(engine.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "ratelimit"}, TypeUrl: server.RateLimitType})).To(Succeed())
		sent, err := engine.Recv()
		Expect(err).NotTo(HaveOccurred())

		close(withdrawn)
		for name, recv := range map[string]func() error{
			"serving":   func() error { _, err := serving.Recv(); return err },
			"silent":    func() error { _, err := silent.Recv(); return err },
			"reporting": func() error { _, err := reporting.Recv(); return err },
		} {
			err := recv()
			Expect(grpcstatus.Code(err)).To(Equal(codes.Unauthenticated), name)
			Expect(grpcstatus.Convert(err).Message()).To(Equal("badge edge: the badge was withdrawn"), name)
		}
		Eventually(registry.Envoys).Should(BeEmpty())
		Expect(delta("edge", "edge")).To(MatchError(ContainSubstring("withdrawn")), "a stream with a proof that has ended already")
		By("an engine with another proof continues")
		Expect(engine.Send(&discoveryv3.DiscoveryRequest{TypeUrl: server.RateLimitType, VersionInfo: sent.GetVersionInfo(), ResponseNonce: sent.GetNonce()})).To(Succeed())
		Eventually(func() string {
			for _, e := range registry.Engines() {
				return fmt.Sprint(e.Types[server.RateLimitType].Acked.Revision)
			}
			return "no engine"
		}).Should(Equal("1"))
	})

	It("does nothing on a stream whose proof has ended already", func() {
		close(withdrawn)
		var handled atomic.Bool
		shown := metadata.NewIncomingContext(context.Background(), metadata.Pairs("badge", "edge"))
		err := s.AuthenticateStream(idleStream{ctx: shown}, func(any, grpc.ServerStream) error {
			handled.Store(true)
			return nil
		})
		Expect(grpcstatus.Code(err)).To(Equal(codes.Unauthenticated))
		Consistently(handled.Load).Should(BeFalse())
	})

	It("logs each reason once a minute for each client, and counts all", func() {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_ = delta("forged", "edge")
				_ = delta("edge", "other")
				_ = limits("edge", "ratelimit")
			})
		}
		all.Wait()
		lines := map[string]map[string]any{}
		for line := range bytes.Lines(log.Contents()) {
			var record map[string]any
			Expect(json.Unmarshal(line, &record)).To(Succeed())
			if record["msg"] == "xds client refused" {
				reason, _ := record["reason"].(string)
				Expect(lines).NotTo(HaveKey(reason))
				lines[reason] = record
			}
		}
		Expect(lines).To(HaveLen(3))
		Expect(lines["token"]).To(And(
			HaveKeyWithValue("level", "WARN"), HaveKeyWithValue("address", HavePrefix("127.0.0.1:")),
			HaveKeyWithValue("err", "no badge that is known"), HaveKeyWithValue("detail", "of the door"),
		))
		Expect(lines["proxy"]).To(And(HaveKeyWithValue("node", "other"), HaveKeyWithValue("identity", "badge edge")))
		Expect(lines).To(HaveKey("ratelimit"))
		Expect(refusals.Counts()).To(Equal(map[string]int64{
			"none": 0, "connections": 0, "handshake": 0, "certificate": 0, "certificate_expired": 0, "certificate_revoked": 0,
			"token": 20, "proxy": 20, "ratelimit": 20, "ended": 0,
		}))
	})
})
