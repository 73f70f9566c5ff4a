package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// client uses the delta protocol and answers only when told to.
type client struct {
	rpc  discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	came chan *discoveryv3.DeltaDiscoveryResponse
	// ended receives the code with which the stream ended.
	ended chan codes.Code
}

func dialClient(addr string) *client {
	GinkgoHelper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	DeferCleanup(cancel)
	rpc, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	Expect(err).NotTo(HaveOccurred())
	c := &client{rpc: rpc, came: make(chan *discoveryv3.DeltaDiscoveryResponse, 20_000), ended: make(chan codes.Code, 1)}
	go func() {
		for {
			r, err := rpc.Recv()
			if err != nil {
				c.ended <- grpcstatus.Code(err)
				return
			}
			c.came <- r
		}
	}()
	return c
}

func (c *client) say(req *discoveryv3.DeltaDiscoveryRequest) {
	GinkgoHelper()
	if req.Node == nil {
		req.Node = &corev3.Node{Id: "gw"}
	}
	Expect(c.rpc.Send(req)).To(Succeed())
}

func (c *client) next() *discoveryv3.DeltaDiscoveryResponse {
	GinkgoHelper()
	var r *discoveryv3.DeltaDiscoveryResponse
	Eventually(c.came).Should(Receive(&r))
	return r
}

// mustNext is next for loops: it does not poll. The deadline of the stream ends it.
func (c *client) mustNext() *discoveryv3.DeltaDiscoveryResponse {
	GinkgoHelper()
	select {
	case r := <-c.came:
		return r
	case code := <-c.ended:
		Fail("the stream ended: " + code.String())
		return nil
	}
}

func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("n", i)
	}
	return list
}

func versions(names []string) map[string]string {
	all := map[string]string{}
	for _, name := range names {
		all[name] = "1"
	}
	return all
}

var _ = Describe("the bounds of an xDS client", func() {
	var (
		s        *server.Server
		registry *status.Registry
		addr     string
	)
	BeforeEach(func() {
		registry = status.NewRegistry()
		s = server.New(server.Options{Status: registry, Log: slog.New(slog.DiscardHandler), FirstWithin: 20 * time.Second})
		addr = serveGRPC(s.GRPC())
		s.Publish(1, map[string]*snapshot.Snapshot{"gw": withCluster(1, "blue")})
	})
	// pairs are names that resources use, not host names that clients request.
	pairs := func(names []string) []string {
		list := make([]string, len(names))
		for i, name := range names {
			list[i] = "pair/" + name
		}
		return list
	}
	secrets := func(names ...string) *discoveryv3.DeltaDiscoveryRequest {
		return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.SecretType, ResourceNamesSubscribe: names}
	}

	DescribeTable("a node id", func(id string, want codes.Code) {
		c := dialClient(addr)
		c.say(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: id}, TypeUrl: snapshot.ClusterType})
		if want == codes.OK {
			c.next()
			return
		}
		Eventually(c.ended).Should(Receive(Equal(want)))
	},
		Entry("of a proxy", "gw.eu-1_A", codes.OK),
		Entry("of maximum length", strings.Repeat("a", 253), codes.OK),
		Entry("that is too long", strings.Repeat("a", 254), codes.InvalidArgument),
		Entry("that is empty", "", codes.InvalidArgument),
		Entry("with a line break", "gw\n", codes.InvalidArgument),
		Entry("with a space", "gw gw", codes.InvalidArgument),
	)

	DescribeTable("names and versions", func(want codes.Code, req *discoveryv3.DeltaDiscoveryRequest) {
		c := dialClient(addr)
		c.say(req)
		if want == codes.OK {
			c.next()
			return
		}
		Eventually(c.ended).Should(Receive(Equal(want)))
	},
		Entry("a name of maximum length", codes.OK, secrets(strings.Repeat("a", 512))),
		Entry("a name that is too long", codes.InvalidArgument, secrets("a", strings.Repeat("a", 513))),
		Entry("an unsubscribed name that is too long", codes.InvalidArgument, &discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: snapshot.SecretType, ResourceNamesUnsubscribe: []string{strings.Repeat("a", 513)},
		}),
		Entry("a reported name that is too long", codes.InvalidArgument, &discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: snapshot.ClusterType, InitialResourceVersions: map[string]string{strings.Repeat("a", 513): "1"},
		}),
		Entry("a version of maximum length", codes.OK, &discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: snapshot.ClusterType, InitialResourceVersions: map[string]string{"a": strings.Repeat("1", 128)},
		}),
		Entry("a version that is too long", codes.InvalidArgument, &discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: snapshot.ClusterType, InitialResourceVersions: map[string]string{"a": strings.Repeat("1", 129)},
		}),
		Entry("the maximum number of names", codes.OK, secrets(pairs(names(10_000))...)),
		Entry("too many names", codes.ResourceExhausted, secrets(pairs(names(10_001))...)),
	)

	It("leave some room for new clients if others have used all", func() {
		for i := range 10 {
			c := dialClient(addr)
			c.say(secrets(pairs(names(10_000))...))
			Expect(c.next().GetRemovedResources()).To(HaveLen(10_000), "client %d", i)
		}
		c := dialClient(addr)
		c.say(secrets(pairs(names(17))...))
		Eventually(c.ended).Should(Receive(Equal(codes.ResourceExhausted)))
		c = dialClient(addr)
		c.say(secrets(pairs(names(16))...))
		Expect(c.next().GetRemovedResources()).To(HaveLen(16))
		By("an unused listener is closed, whatever else is")
		reported := maps.Clone(versions(names(100)))
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ListenerType, InitialResourceVersions: reported})
		Expect(c.next().GetRemovedResources()).To(HaveLen(64))
	})

	It("truncate the reason of a refusal", func() {
		c := dialClient(addr)
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ClusterType})
		c.say(&discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: snapshot.ClusterType, ResponseNonce: c.next().GetNonce(),
			ErrorDetail: &rpcstatus.Status{Code: 3, Message: strings.Repeat("ü", 1<<20)},
		})
		Eventually(func() string {
			for _, e := range registry.Envoys() {
				return e.Types[snapshot.ClusterType].Rejected.Text
			}
			return ""
		}).Should(And(HavePrefix("üü"), HaveSuffix("…"), WithTransform(func(s string) int { return len(s) }, BeNumerically("<=", 4096))))
	})

	It("end a stream that leaves too many responses unanswered", func() {
		c := dialClient(addr)
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ClusterType})
		forms := []map[string]*snapshot.Snapshot{{"gw": clusters(2, 1, time.Second)}, {"gw": clusters(2, 1, 2*time.Second)}}
		c.next() // a publication before it would be part of it, and one after the other is answered alone
		for i := range 10_000 {
			s.Publish(2, forms[i%2])
			if i < 9_999 {
				c.mustNext()
			}
		}
		Eventually(c.ended).Should(Receive(Equal(codes.ResourceExhausted)))
	})

	It("do not end a stream that refuses many resources together", func() {
		s.Publish(2, map[string]*snapshot.Snapshot{"gw": clusters(2, 10_001, time.Second)})
		c := dialClient(addr)
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ClusterType})
		c.say(&discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: snapshot.ClusterType, ResponseNonce: c.next().GetNonce(), ErrorDetail: &rpcstatus.Status{Code: 3, Message: "no"},
		})
		for range 10_001 {
			c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ClusterType, ResponseNonce: c.mustNext().GetNonce()})
		}
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ListenerType})
		Expect(c.next().GetTypeUrl()).To(Equal(snapshot.ListenerType), "nothing else is to be sent")
	})

	It("delay a stream that keeps requesting, and not one that answers", func() {
		c := dialClient(addr)
		for range 300 {
			c.say(secrets("pair/x")) // the answer is that there is none
			c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.SecretType, ResourceNamesUnsubscribe: []string{"pair/x"}})
		}
		Eventually(func() int { return len(c.came) }).Should(BeNumerically(">=", 20))
		Consistently(func() int { return len(c.came) }).WithTimeout(200 * time.Millisecond).Should(BeNumerically("<", 200))

		c = dialClient(addr)
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ClusterType})
		const last = 400
		for revision := range int64(last) {
			c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ClusterType, ResponseNonce: c.next().GetNonce()})
			s.Publish(revision+1, map[string]*snapshot.Snapshot{"gw": withCluster(revision+1, fmt.Sprint("c", revision))})
		}
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ClusterType, ResponseNonce: c.next().GetNonce()})
		Eventually(func() (acked int64) {
			for _, e := range registry.Envoys() {
				acked = max(acked, e.Types[snapshot.ClusterType].Acked.Revision)
			}
			return acked
		}).Should(Equal(int64(last)))
	})

	It("end a silent connection", func() {
		s = server.New(server.Options{Status: registry, Log: slog.New(slog.DiscardHandler), FirstWithin: 10 * time.Millisecond})
		c := dialClient(serveGRPC(s.GRPC()))
		Eventually(c.ended).Should(Receive(Equal(codes.DeadlineExceeded)))
		Expect(registry.Envoys()).To(BeEmpty())
	})

	It("start anew when the database is replaced", func() {
		c := dialClient(addr)
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ClusterType})
		c.next()
		s.Replace(1, map[string]*snapshot.Snapshot{"gw": withCluster(1, "green")})
		Eventually(c.ended).Should(Receive(Equal(codes.Aborted)))
	})
})
