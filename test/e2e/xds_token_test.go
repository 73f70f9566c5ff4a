package e2e_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	clusterservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// xdsToken creates a token of the xDS port, at /proxy/PROXY/token or /ratelimit/token.
func xdsToken(api testkit.API, path, name string) string {
	GinkgoHelper()
	var made struct{ Token string }
	Expect(json.Unmarshal([]byte(post(api, path, "Token_name="+name).Body), &made)).To(Succeed())
	Expect(made.Token).To(HavePrefix("ghx_"))
	return made.Token
}

// xdsPort is a port of a control plane, with the credentials to connect.
type xdsPort struct {
	addr  string
	creds credentials.TransportCredentials // nil: without TLS
}

// The calls of the xDS port.
const (
	deltaADS = "delta ADS"
	loads    = "load reports"
	sotwADS  = "rate limits"
	fetch    = "unary fetch"
)

// ask makes one call with metadata, under a node id, and returns the error with which the
// port answers the first message; nil for a response.
func (p xdsPort) ask(call, node string, md ...string) error {
	GinkgoHelper()
	creds := p.creds
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient(p.addr, grpc.WithTransportCredentials(creds))
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(limit(), md...))
	defer cancel()
	id := &corev3.Node{Id: node}
	switch call {
	case deltaADS:
		s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
		if err != nil {
			return err
		}
		return firstAnswer(s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: id, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}), s.Recv)
	case loads:
		s, err := loadv3.NewLoadReportingServiceClient(conn).StreamLoadStats(ctx)
		if err != nil {
			return err
		}
		return firstAnswer(s.Send(&loadv3.LoadStatsRequest{Node: id}), s.Recv)
	case sotwADS:
		s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
		if err != nil {
			return err
		}
		return firstAnswer(s.Send(&discoveryv3.DiscoveryRequest{Node: id, TypeUrl: "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"}), s.Recv)
	default:
		_, err := clusterservicev3.NewClusterDiscoveryServiceClient(conn).FetchClusters(ctx, &discoveryv3.DiscoveryRequest{Node: id})
		return err
	}
}

// firstAnswer returns the answer to the first message. The error of a stream that has
// ended shows only when it is read.
func firstAnswer[M any](_ error, receive func() (M, error)) error {
	_, err := receive()
	return err
}

// bearer returns the metadata of a token.
func bearer(token string) []string { return []string{"authorization", "Bearer " + token} }

// refusalsOf returns the log records about refused clients, without the time.
func refusalsOf(g *testkit.Gatehouse) (list []string) {
	for _, r := range g.Records("xds client refused") {
		list = append(list, r["reason"].(string))
	}
	return list
}

// twoProxies creates the proxies edge and inner, a token for each, and one for the engine.
func twoProxies(api testkit.API) (edge, inner, engine string) {
	GinkgoHelper()
	post(api, "/proxy", "Name=edge")
	post(api, "/proxy", "Name=inner")
	return xdsToken(api, "/proxy/edge/token", "one"), xdsToken(api, "/proxy/inner/token", "one"), xdsToken(api, "/ratelimit/token", "one")
}

var _ = Describe("The xDS port with tokens", func() {
	It("gives each holder what its token is for, and nobody else, even if it is open", func() {
		g := serve()
		p := xdsPort{addr: g.XDSAddr}
		edge, inner, engine := twoProxies(g.API)
		revoked := xdsToken(g.API, "/proxy/edge/token", "two")
		remove(g.API, "/proxy/edge/token/two")

		By("serving the holder")
		Expect(p.ask(deltaADS, "edge", bearer(edge)...)).To(Succeed())
		Expect(p.ask(loads, "edge", bearer(edge)...)).To(Succeed())
		Expect(p.ask(sotwADS, "ratelimit", bearer(engine)...)).To(Succeed())
		Expect(p.ask(deltaADS, "edge")).To(Succeed(), "the port is on loopback and has no TLS: nobody needs a token")

		By("refusing all others")
		var told []string
		for _, c := range []struct {
			call, node, token string
			code              codes.Code
		}{
			{deltaADS, "edge", inner, codes.PermissionDenied},
			{loads, "edge", inner, codes.PermissionDenied},
			{deltaADS, "none", inner, codes.PermissionDenied},
			{sotwADS, "ratelimit", edge, codes.PermissionDenied},
			{sotwADS, "edge", edge, codes.PermissionDenied},
			{deltaADS, "edge", engine, codes.PermissionDenied},
			{deltaADS, "ratelimit", engine, codes.PermissionDenied},
			{loads, "edge", engine, codes.PermissionDenied},
			{fetch, "edge", edge, codes.Unimplemented},
			{fetch, "edge", revoked, codes.Unauthenticated},
			{deltaADS, "edge", revoked, codes.Unauthenticated},
			{loads, "edge", revoked, codes.Unauthenticated},
			{sotwADS, "ratelimit", revoked, codes.Unauthenticated},
			{deltaADS, "edge", edge + "A", codes.Unauthenticated},
			{deltaADS, "edge", strings.ToUpper(edge), codes.Unauthenticated},
			{deltaADS, "edge", "", codes.Unauthenticated},
			{sotwADS, "ratelimit", "gh_" + strings.TrimPrefix(edge, "ghx_"), codes.Unauthenticated},
		} {
			err := p.ask(c.call, c.node, bearer(c.token)...)
			Expect(status.Code(err)).To(Equal(c.code), "%s as %s: %v", c.call, c.node, err)
			told = append(told, status.Convert(err).Message())
		}
		Expect(status.Code(p.ask(deltaADS, "edge", append(bearer(edge), bearer(edge)...)...))).To(Equal(codes.Unauthenticated))

		By("revealing neither tokens nor proxies but their own")
		all := strings.Join(told, "\n") + g.Stderr.String()
		for _, token := range []string{edge, inner, engine, revoked} {
			Expect(all).NotTo(Or(ContainSubstring(token), ContainSubstring(strings.TrimPrefix(token, "ghx_"))))
		}
		Expect(told[0]).To(Equal(strings.ReplaceAll(told[2], "none", "edge")), "whether a proxy exists makes no difference")
		Expect(refusalsOf(g)).To(ConsistOf("proxy", "ratelimit", "token"), "each reason once a minute for the address")
	})

	It("drops a stream within seconds when its token is revoked, at every control plane of the database", func() {
		database, keys := startPostgres().URL("gatehouse"), filepath.Join(GinkgoT().TempDir(), "secret.key")
		one := serve("--database-url", database, "--secret-key-file", keys)
		two := serve("--database-url", database, "--secret-key-file", keys)
		edge, inner, _ := twoProxies(one.API)
		connected := func(g *testkit.Gatehouse, token, node string) <-chan error {
			GinkgoHelper()
			Eventually(func() error { return xdsPort{addr: g.XDSAddr}.ask(deltaADS, node, bearer(token)...) }).Should(Succeed())
			ended, got := make(chan error, 1), make(chan struct{})
			conn, err := grpc.NewClient(g.XDSAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(conn.Close)
			ctx := metadata.AppendToOutgoingContext(limit(), bearer(token)...)
			s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"})).To(Succeed())
			go func() {
				_, err := s.Recv()
				close(got)
				for err == nil {
					_, err = s.Recv()
				}
				ended <- err
			}()
			Eventually(got).Should(BeClosed())
			return ended
		}
		here, there := connected(one, edge, "edge"), connected(two, edge, "edge")
		stays := connected(two, inner, "inner")
		remove(one.API, "/proxy/edge/token/one")
		for where, ended := range map[string]<-chan error{"where it was revoked": here, "at the other one": there} {
			var err error
			Eventually(ended).Should(Receive(&err), where)
			Expect(status.Code(err)).To(Equal(codes.Unauthenticated), where)
			Expect(err).To(MatchError(ContainSubstring("the token was revoked")))
		}
		Consistently(stays, "2s").ShouldNot(Receive())
		Expect(status.Code(xdsPort{addr: two.XDSAddr}.ask(deltaADS, "edge", bearer(edge)...))).To(Equal(codes.Unauthenticated))
	})

	It("continues unchanged while the database is away, and reports it once", func() {
		database := startPostgres()
		g := serve("--database-url", database.URL("gatehouse"))
		p := xdsPort{addr: g.XDSAddr}
		edge, inner, _ := twoProxies(g.API)
		Expect(p.ask(deltaADS, "edge", bearer(edge)...)).To(Succeed())
		Expect(database.Stop()).To(Succeed())
		away := "tokens of the xds port stay as they are, trying again"
		Eventually(g.Records).WithArguments(away).Should(HaveLen(1))
		Expect(p.ask(deltaADS, "inner", bearer(inner)...)).To(Succeed(), "it never came before")
		Expect(status.Code(p.ask(deltaADS, "inner", bearer(edge)...))).To(Equal(codes.PermissionDenied))
		Expect(status.Code(p.ask(deltaADS, "inner", bearer(inner+"x")...))).To(Equal(codes.Unauthenticated))
		Expect(database.Restart(limit())).To(Succeed())
		Eventually(g.Records).WithArguments("tokens of the xds port are up to date again").Should(HaveLen(1))
		Expect(g.Records(away)).To(HaveLen(1))
		remove(g.API, "/proxy/edge/token/one")
		Expect(status.Code(p.ask(deltaADS, "edge", bearer(edge)...))).To(Equal(codes.Unauthenticated), "with the answer to the call")
	})
})
