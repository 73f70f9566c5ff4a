package attack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
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
	"google.golang.org/grpc/status"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	secretType   = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	limitType    = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
)

// A name that no proxy has is not among these: its Envoy waits for it.
var badNodes = []struct{ name, id string }{
	{"of 254 bytes", strings.Repeat("a", 254)},
	{"of a megabyte", strings.Repeat("a", 1<<20)},
	{"that is empty", ""},
	{"with a line break", "gw\nlevel=ERROR msg=forged"},
	{"with a space", "gw "},
	{"with a slash", "../gw"},
	{"with a control character", "gw\x1b[2J"},
	{"with a zero", "gw\x00"},
	{"that is no ASCII", "gẃ"},
}

// xdsClient is a stream on which a spec can send anything.
type xdsClient struct {
	discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	conn *grpc.ClientConn
}

func dial(addr string) *grpc.ClientConn {
	GinkgoHelper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = conn.Close() }) // it may be closed
	return conn
}

func openStream(ctx context.Context, conn *grpc.ClientConn) xdsClient {
	GinkgoHelper()
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	Expect(err).NotTo(HaveOccurred())
	return xdsClient{s, conn}
}

// say sends a request; errors of the stream show when it is read.
func (x xdsClient) say(req *discoveryv3.DeltaDiscoveryRequest) { _ = x.Send(req) }

// end reads until the stream ends and returns the status.
func (x xdsClient) end() *status.Status {
	for {
		if _, err := x.Recv(); err != nil {
			return status.Convert(err)
		}
	}
}

func firstRequest(node, typeURL string) *discoveryv3.DeltaDiscoveryRequest {
	return &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node, Cluster: node}, TypeUrl: typeURL}
}

// manyNames returns names of 100 bytes.
func manyNames(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%0100d", i)
	}
	return list
}

// logged counts the log records with a message, and returns the length of the longest.
func logged(t target, msg string) (lines, longest int) {
	for _, line := range t.Stderr.Lines() {
		if strings.Contains(line, `"msg":"`+msg+`"`) {
			lines, longest = lines+1, max(longest, len(line))
		}
	}
	return lines, longest
}

var _ = Describe("An xDS client", func() {
	It("needs a node id that could be a proxy", func(ctx SpecContext) {
		for _, n := range some(4, badNodes) {
			if n.id != strings.ToValidUTF8(n.id, "") {
				continue
			}
			s := openStream(ctx, dial(gw.XDSAddr))
			s.say(firstRequest(n.id, clusterType))
			got := s.end()
			Expect(got.Code()).To(Equal(codes.InvalidArgument), "a node id %s: %v", n.name, got)
			Expect(got.Message()).To(ContainSubstring("node.id"))
			Expect(len(got.Message())).To(BeNumerically("<", 300))
		}
		_, longest := logged(gw, "envoy refused")
		Expect(longest).To(BeNumerically("<", 2000))

		By("a name without a proxy is accepted, and waits")
		s := openStream(ctx, dial(gw.XDSAddr))
		s.say(firstRequest("later", clusterType))
		r, err := s.Recv()
		Expect(err).NotTo(HaveOccurred())
		Expect(r.GetResources()).To(BeEmpty())
	}, SpecTimeout(time.Minute))

	It("does not fill log, status and events with the reasons of its refusals", func(ctx SpecContext) {
		s := openStream(ctx, dial(gw.XDSAddr))
		s.say(firstRequest("gw", clusterType))
		r, err := s.Recv()
		Expect(err).NotTo(HaveOccurred())
		Expect(r.GetResources()).NotTo(BeEmpty())
		s.say(&discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: clusterType, ResponseNonce: r.GetNonce(),
			ErrorDetail: &rpcstatus.Status{Code: 3, Message: "evil " + strings.Repeat("ü", 1<<20)},
		})
		xds := func() string {
			a, err := gw.API.Get(ctx, "/proxy/gw/status")
			Expect(err).NotTo(HaveOccurred())
			return a.Body
		}
		Eventually(xds).Should(ContainSubstring("evil"))
		Expect(len(xds())).To(BeNumerically("<", 64<<10))
		lines, longest := logged(gw, "envoy refused configuration and keeps what it had")
		Expect(lines).To(BeNumerically(">", 0))
		Expect(longest).To(BeNumerically("<", 6<<10))
		Expect(s.CloseSend()).To(Succeed())
		Eventually(xds).ShouldNot(ContainSubstring("evil"))
	}, SpecTimeout(time.Minute))

	DescribeTable("is disconnected if it requests too much",
		func(want codes.Code, req *discoveryv3.DeltaDiscoveryRequest) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			s := openStream(ctx, dial(gw.XDSAddr))
			req.Node = &corev3.Node{Id: "gw"}
			s.say(req)
			Expect(s.end().Code()).To(Equal(want))
		},
		Entry("200,000 secrets", codes.ResourceExhausted, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: secretType, ResourceNamesSubscribe: manyNames(200_000)}),
		Entry("200,000 route configurations", codes.ResourceExhausted, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: routeType, ResourceNamesSubscribe: manyNames(200_000)}),
		Entry("a name of 10 kB", codes.InvalidArgument, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: secretType, ResourceNamesSubscribe: []string{strings.Repeat("a", 10<<10)}}),
		Entry("a reported name of 10 kB", codes.InvalidArgument, &discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: clusterType, InitialResourceVersions: map[string]string{strings.Repeat("a", 10<<10): "1"},
		}),
		Entry("a version of 10 kB", codes.InvalidArgument, &discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: clusterType, InitialResourceVersions: map[string]string{"a": strings.Repeat("1", 10<<10)},
		}),
		Entry("a request of 40 MB", codes.ResourceExhausted, &discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: secretType, ResourceNamesSubscribe: []string{strings.Repeat("a", 40<<20)},
		}),
	)

	It("gets few answers if it requests again and again", func(ctx SpecContext) {
		const questions = 3000
		s := openStream(ctx, dial(gw.XDSAddr))
		answers := make(chan int)
		go func() {
			n := 0
			for {
				if _, err := s.Recv(); err != nil {
					answers <- n
					return
				}
				n++
			}
		}()
		s.say(firstRequest("gw", clusterType))
		sent := make(chan struct{})
		go func() { // the control plane reads it slowly
			defer close(sent)
			for range questions {
				if s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterType, ResourceNamesSubscribe: []string{"*"}}) != nil {
					return
				}
			}
		}()
		// Others are still served.
		a, err := gw.API.Post(ctx, "/service?wait=applied&timeout=10s", "Service_Name=meanwhile", "fqdn=meanwhile.example")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(201), a.Body)
		_, err = gw.API.Delete(ctx, "/service/meanwhile")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error { // long enough for all of them, if they were answered
			_, err := gw.API.Get(ctx, "/status")
			return err
		}).Should(Succeed())
		Expect(s.conn.Close()).To(Succeed())
		Expect(<-answers).To(BeNumerically("<", questions/3))
		<-sent
	}, SpecTimeout(time.Minute))

	It("leaves nothing behind, however many there are and whatever each one sends", func(ctx SpecContext) {
		clients := 12 // together they may keep nothing more than ten of them
		if all() {
			clients = 100
		}
		// A program whose heap nothing else fills. What it removes counts as gone
		// immediately, and the clients never answer that.
		t := startEmpty(ctx, nil, "--removal-grace", "1ms")
		a, err := t.API.Post(ctx, "/service", "Service_Name=shop", "fqdn=*")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(201), a.Body) // an empty database would answer no client
		before := liveHeap(ctx, t)
		report := map[string]string{}
		for _, name := range manyNames(20_000) {
			report[name] = strings.Repeat("1", 60)
		}
		attack := func(clients int, measure func()) {
			var streams []xdsClient
			for i := range clients {
				s := openStream(ctx, dial(t.XDSAddr))
				first := firstRequest("evil-"+strconv.Itoa(i), clusterType)
				first.InitialResourceVersions = report
				s.say(first)
				s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: listenerType}) // answered after the first
				_, err := s.Recv()
				Expect(err).NotTo(HaveOccurred())
				streams = append(streams, s)
			}
			measure()
			for _, s := range streams {
				Expect(s.conn.Close()).To(Succeed())
			}
			Eventually(func() string {
				a, err := t.API.Get(ctx, "/status")
				Expect(err).NotTo(HaveOccurred())
				return a.Body
			}).ShouldNot(ContainSubstring("evil-"))
		}
		var few, many float64
		attack(clients, func() { few = min(liveHeap(ctx, t), liveHeap(ctx, t), liveHeap(ctx, t)) })
		attack(4*clients, func() {
			// Memory that was read and freed stays in the heap for a collection or two.
			Eventually(func() float64 {
				many = liveHeap(ctx, t)
				return many
			}).WithContext(ctx).Should(BeNumerically("<", 2*few))
		})
		AddReportEntry("heap", fmt.Sprintf("%.1f MB before, %.1f MB with %d clients, %.1f MB with %d when those are gone",
			before/1e6, few/1e6, clients, many/1e6, 4*clients))
	}, SpecTimeout(5*time.Minute))

	It("does not fill the log by reconnecting", func(ctx SpecContext) {
		t := startEmpty(ctx, nil)
		const comings = 2000
		conn := dial(t.XDSAddr)
		for range comings {
			streamCtx, leave := context.WithCancel(ctx)
			s := openStream(streamCtx, conn)
			s.say(firstRequest("nobody", clusterType))
			_, err := s.Recv()
			Expect(err).NotTo(HaveOccurred())
			leave()
		}
		lines, _ := logged(t, "envoy connected")
		Expect(lines).To(And(BeNumerically(">=", 1000), BeNumerically("<", comings)))
	}, SpecTimeout(2*time.Minute))
})

var _ = Describe("A client that plays a rate-limit engine", func() {
	It("fills neither log nor status with its messages", func(ctx SpecContext) {
		t := startEmpty(ctx, nil)
		for _, first := range []*discoveryv3.DiscoveryRequest{
			{Node: &corev3.Node{Id: "ratelimit"}, TypeUrl: limitType, VersionInfo: strings.Repeat("v", 1<<20)},
			{Node: &corev3.Node{Id: "ratelimit"}, TypeUrl: strings.Repeat("t", 1<<20)},
			{Node: &corev3.Node{Id: strings.Repeat("n", 1<<20)}, TypeUrl: limitType},
		} {
			s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(dial(t.XDSAddr)).StreamAggregatedResources(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(s.Send(first)).To(Succeed())
			r, err := s.Recv()
			if err != nil {
				Expect(len(status.Convert(err).Message())).To(BeNumerically("<", 500))
				continue
			}
			Expect(s.Send(&discoveryv3.DiscoveryRequest{
				TypeUrl: limitType, ResponseNonce: r.GetNonce(), ErrorDetail: &rpcstatus.Status{Message: strings.Repeat("evil ", 1<<18)},
			})).To(Succeed())
			Eventually(func() int { n, _ := logged(t, "rate-limit engine refused the limits and keeps what it had"); return n }).Should(Equal(1))
		}
		for _, line := range t.Stderr.Lines() {
			Expect(len(line)).To(BeNumerically("<", 6<<10))
		}
		a, err := t.API.Get(ctx, "/status")
		Expect(err).NotTo(HaveOccurred())
		Expect(len(a.Body)).To(BeNumerically("<", 64<<10))
	}, SpecTimeout(time.Minute))
})

// liveHeap returns the live heap of the program at the last collection after the call.
func liveHeap(ctx context.Context, t target) float64 {
	GinkgoHelper()
	began := metric(ctx, t, "go_gc_duration_seconds_count")
	document := map[string]any{"services": []map[string]string{{"name": "shop", "fqdn": "*"}}}
	text, err := json.Marshal(document)
	Expect(err).NotTo(HaveOccurred())
	// The answers become garbage, so that a collection follows.
	Eventually(func() float64 {
		_, err := t.API.Do(ctx, "PUT", "/config?dry_run=true", "application/json", string(text)+strings.Repeat(" ", 900<<10))
		Expect(err).NotTo(HaveOccurred())
		return metric(ctx, t, "go_gc_duration_seconds_count")
	}).WithContext(ctx).Should(BeNumerically(">=", began+2))
	return metric(ctx, t, "go_memstats_next_gc_bytes") / 2
}

func metric(ctx context.Context, t target, name string) float64 {
	GinkgoHelper()
	a, err := t.API.Get(ctx, "/metrics")
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(a.Body)
	Expect(found).To(HaveLen(2), name)
	v, err := strconv.ParseFloat(found[1], 64)
	Expect(err).NotTo(HaveOccurred())
	return v
}
