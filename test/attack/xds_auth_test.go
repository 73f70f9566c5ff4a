package attack_test

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
)

// xdsAttempt is one way to request another proxy's configuration. By default it requests that of
// edge with the delta protocol.
type xdsAttempt struct {
	name string
	// cert is the client's certificate; nil means none.
	cert func(*xdsLab) *tls.Certificate
	// md is metadata. TOKEN(name) in it stands for a token of the lab.
	md         []string
	call, node string
	// code is how the call ends, reason what is logged and counted. For handshake the connection
	// fails.
	code   codes.Code
	reason string
}

// handshake is the code of a call without a connection.
const handshake = codes.Unavailable

func forgedWith(names ...generalName) func(*xdsLab) *tls.Certificate {
	return func(l *xdsLab) *tls.Certificate { return l.forged(nil, names...) }
}

func changed(change func(*x509.Certificate)) func(*xdsLab) *tls.Certificate {
	return func(l *xdsLab) *tls.Certificate { return l.forged(change) }
}

func issued(name string) func(*xdsLab) *tls.Certificate {
	return func(l *xdsLab) *tls.Certificate { return l.issued(name) }
}

// byOthers returns certificates that the authority of the port has not issued, or would not issue.
func byOthers() []xdsAttempt {
	return []xdsAttempt{
		{name: "no certificate", code: codes.Unauthenticated, reason: "none"},
		{name: "one of another authority", code: handshake, reason: "certificate", cert: func(*xdsLab) *tls.Certificate {
			GinkgoHelper()
			other := &xdsLab{dir: GinkgoT().TempDir() + "/pki"}
			other.pki("init", other.dir)
			other.pki("issue", other.dir, "proxy", "edge")
			return other.issued("edge")
		}},
		{name: "a self-signed one", code: handshake, reason: "certificate", cert: func(*xdsLab) *tls.Certificate { return forgeCertificate(nil, nil, nil) }},
		{name: "one that has expired", code: handshake, reason: "certificate_expired",
			cert: changed(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })},
		{name: "one that is not valid yet", code: handshake, reason: "certificate_expired",
			cert: changed(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) })},
		{name: "a revoked one", node: "revoked", code: handshake, reason: "certificate_revoked", cert: issued("revoked")},
		{name: "one for servers", code: handshake, reason: "certificate",
			cert: changed(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })},
		{name: "one for any use", code: handshake, reason: "certificate",
			cert: changed(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} })},
		{name: "one without a use", code: handshake, reason: "certificate", cert: changed(func(c *x509.Certificate) { c.ExtKeyUsage = nil })},
		{name: "the port's own", code: handshake, reason: "certificate", cert: issued("server")},
		{name: "one that an Envoy has issued", code: handshake, reason: "certificate", cert: func(l *xdsLab) *tls.Certificate {
			inner := l.issued("inner")
			leaf, err := x509.ParseCertificate(inner.Certificate[0])
			Expect(err).NotTo(HaveOccurred())
			evil := forgeCertificate(leaf, inner.PrivateKey.(crypto.Signer), nil)
			evil.Certificate = append(evil.Certificate, inner.Certificate[0])
			return evil
		}},
		{name: "that of an authority", code: handshake, reason: "certificate",
			cert: changed(func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true })},
		{name: "one with another key", code: handshake, reason: "handshake", cert: func(l *xdsLab) *tls.Certificate {
			return &tls.Certificate{Certificate: l.issued("edge").Certificate, PrivateKey: l.issued("inner").PrivateKey}
		}},
	}
}

// withOtherNames returns certificates of the right authority that do not name edge.
func withOtherNames() []xdsAttempt {
	list := []xdsAttempt{{name: "the certificate of another proxy", cert: issued("inner")}, {name: "the engine's certificate", cert: issued("ratelimit")}}
	list = append(list, xdsAttempt{name: "the engine's certificate for a proxy called ratelimit", cert: issued("ratelimit"), node: "ratelimit"})
	list = append(list, xdsAttempt{name: "a common name alone", cert: func(l *xdsLab) *tls.Certificate {
		return l.forged(func(c *x509.Certificate) { c.Subject.CommonName, c.ExtraExtensions = "edge", nil })
	}})
	for _, n := range []generalName{
		dnsName("*"), dnsName("*.edge"), dnsName("EDGE"), dnsName("edge."), dnsName("edge.example"), dnsName("edge\x00.example"),
		uriName("spiffe://gatehouse/proxy/inner"), uriName("spiffe://gatehouse/proxy/*"), uriName("spiffe://gatehouse/proxy/Edge"),
		uriName("spiffe://gatehouse/proxy/edge/"), uriName("spiffe://gatehouse//proxy/edge"), uriName("spiffe://gatehouse/proxy//edge"),
		uriName("spiffe://gatehouse/x/../proxy/edge"), uriName("spiffe://gatehouse/proxy/inner/../edge"), uriName("spiffe://gatehouse/proxy/%65dge"),
		uriName("spiffe://gatehouse/proxy/edge?x=1"), uriName("spiffe://gatehouse/proxy/edge#x"), uriName("spiffe://user@gatehouse/proxy/edge"),
		uriName("spiffe://gatehouse:1/proxy/edge"), uriName("spiffe:///proxy/edge"), uriName("SPIFFE://gatehouse/proxy/edge"),
		uriName("https://gatehouse/proxy/edge"), uriName("spiffe://gatehouse/Proxy/edge"), uriName("spiffe://gatehouse/ns/default/sa/edge"),
		uriName("spiffe://gatehouse/edge"), uriName("edge"), uriName("spiffe://gatehouse/ratelimit/proxy/edge"), {1, "edge"}, // an e-mail address
	} {
		list = append(list, xdsAttempt{name: fmt.Sprintf("the name %q", n.text), cert: forgedWith(n)})
	}
	for i := range list {
		list[i].code, list[i].reason = codes.PermissionDenied, "proxy"
	}
	return list
}

// withTokens returns tokens that are not edge's.
func withTokens() []xdsAttempt {
	list := []xdsAttempt{
		{name: "garbage", md: []string{"authorization", "Bearer garbage"}},
		{name: "a revoked token", md: []string{"authorization", "Bearer TOKEN(revoked)"}},
		{name: "an empty token", md: []string{"authorization", "Bearer "}},
		{name: "nothing", md: []string{"authorization", ""}},
		{name: "a token without a scheme", md: []string{"authorization", "TOKEN(edge)"}},
		{name: "a token as a password", md: []string{"authorization", "Basic TOKEN(edge)"}},
		{name: "a token and more", md: []string{"authorization", "Bearer TOKEN(edge) TOKEN(edge)"}},
		{name: "a part of a token", md: []string{"authorization", "Bearer TOKEN(edge)x"}},
		{name: "two tokens", md: []string{"authorization", "Bearer TOKEN(edge)", "authorization", "Bearer TOKEN(edge)"}},
		{name: "two tokens with a comma", md: []string{"authorization", "Bearer TOKEN(edge), Bearer TOKEN(edge)"}},
		{name: "a bad token before a good one", md: []string{"authorization", "Bearer x", "authorization", "Bearer TOKEN(edge)"}},
		{name: "a bad token beside a good certificate", cert: issued("edge"), md: []string{"authorization", "Bearer x"}},
		{name: "8 kB of a token", md: []string{"authorization", "Bearer " + strings.Repeat("a", 8<<10)}},
	}
	for i := range list {
		list[i].code, list[i].reason = codes.Unauthenticated, "token"
	}
	edge := []string{"authorization", "Bearer TOKEN(edge)"}
	return append(list,
		xdsAttempt{name: "a token elsewhere", md: []string{"x-authorization", "Bearer TOKEN(edge)", "token", "TOKEN(edge)"}, code: codes.Unauthenticated, reason: "none"},
		xdsAttempt{name: "a token of another proxy", md: []string{"authorization", "Bearer TOKEN(inner)"}, code: codes.PermissionDenied, reason: "proxy"},
		xdsAttempt{name: "a token of the engine", md: []string{"authorization", "Bearer TOKEN(ratelimit)"}, code: codes.PermissionDenied, reason: "proxy"},
		xdsAttempt{name: "a token of the engine for a proxy called ratelimit", md: []string{"authorization", "Bearer TOKEN(ratelimit)"}, node: "ratelimit",
			code: codes.PermissionDenied, reason: "proxy"},
		xdsAttempt{name: "the certificate of another proxy with a good token", cert: issued("inner"), md: edge, code: codes.PermissionDenied, reason: "proxy"},
		xdsAttempt{name: "the engine's certificate with a good token", cert: issued("ratelimit"), md: edge, code: codes.PermissionDenied, reason: "proxy"},
	)
}

// byOtherCalls returns calls that are not an Envoy's for its own configuration.
func byOtherCalls() (list []xdsAttempt) {
	for _, path := range []string{
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/FetchAggregatedResources", "/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters",
		"/envoy.service.secret.v3.SecretDiscoveryService/FetchSecrets", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
		"/grpc.health.v1.Health/Check", "/no.such.Service/Method", "/envoy.service.discovery.v3.AggregatedDiscoveryService/",
	} {
		list = append(list,
			xdsAttempt{name: "without a proof " + path, call: path, code: codes.Unauthenticated, reason: "none"},
			xdsAttempt{name: "with a bad token " + path, call: path, md: []string{"authorization", "Bearer x"}, code: codes.Unauthenticated, reason: "token"},
			xdsAttempt{name: "with a proof " + path, call: path, cert: issued("edge"), code: codes.Unimplemented})
	}
	return append(list,
		xdsAttempt{name: "a path that is none", call: "/", code: codes.Unimplemented}, // gRPC's own answer, without a handler
		xdsAttempt{name: "load reports without a proof", call: callLRS, code: codes.Unauthenticated, reason: "none"},
		xdsAttempt{name: "load reports of another", call: callLRS, cert: issued("inner"), code: codes.PermissionDenied, reason: "proxy"},
		xdsAttempt{name: "load reports of the engine", call: callLRS, cert: issued("ratelimit"), code: codes.PermissionDenied, reason: "proxy"},
		xdsAttempt{name: "rate limits without a proof", call: callSotW, node: "ratelimit", code: codes.Unauthenticated, reason: "none"},
		xdsAttempt{name: "rate limits for a proxy", call: callSotW, node: "ratelimit", cert: issued("edge"), code: codes.PermissionDenied, reason: "ratelimit"},
		xdsAttempt{name: "rate limits for the token of a proxy", call: callSotW, node: "ratelimit", md: []string{"authorization", "Bearer TOKEN(edge)"},
			code: codes.PermissionDenied, reason: "ratelimit"})
}

// try makes an attempt and returns how it ended.
func (l *xdsLab) try(ctx context.Context, a xdsAttempt, address string) (codes.Code, string) {
	GinkgoHelper()
	var cert *tls.Certificate
	if a.cert != nil {
		cert = a.cert(l)
	}
	md := append([]string{}, a.md...)
	for i := range md {
		for name, token := range l.tokens {
			md[i] = strings.ReplaceAll(md[i], "TOKEN("+name+")", token)
		}
	}
	call, node := callADS, "edge"
	if a.call != "" {
		call = a.call
	}
	if a.node != "" {
		node = a.node
	}
	conn := l.dial(address, cert)
	defer conn.Close()
	got := ask(ctx, conn, call, node, md...)
	if got == nil {
		return codes.OK, "a response"
	}
	return got.Code(), got.Message()
}

// expectClean checks that a text for a client or for the log reveals nothing it should not.
func (l *xdsLab) expectClean(text string, what string) {
	GinkgoHelper()
	for name, token := range l.tokens {
		Expect(text).NotTo(ContainSubstring(token), "%s has the token %s", what, name)
	}
	Expect(text).NotTo(Or(ContainSubstring("goroutine"), ContainSubstring(".go:"), ContainSubstring("panic"), ContainSubstring("PRIVATE KEY")), what)
}

var _ = Describe("A client of the xDS port with a false identity", Ordered, ContinueOnFailure, func() {
	var l *xdsLab
	var edge xdsClient
	addresses, weight := 0, 1
	// nextAddress returns an address that no other client has.
	nextAddress := func() string {
		addresses++
		return fmt.Sprintf("127.0.%d.%d", 1+addresses/200, 1+addresses%200)
	}
	BeforeAll(func(ctx SpecContext) {
		l = startXDSLab(ctx)
		edge = openStream(context.Background(), l.dial("127.0.0.1", l.issued("edge")))
		edge.say(firstRequest("edge", clusterType))
		r, err := edge.Recv()
		Expect(err).NotTo(HaveOccurred())
		Expect(resourceNames(r)).To(ConsistOf("up-edge", "gatehouse/ratelimit"))
		edge.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterType, ResponseNonce: r.GetNonce()})
	}, NodeTimeout(2*time.Minute))

	// After every attack the others have what they had, and receive what is new.
	AfterEach(func(ctx SpecContext) {
		Expect(l.Exited()).NotTo(BeClosed(), l.Stderr.String())
		Expect(l.served("/")).To(Equal("blue"), "the Envoy of the gateway")
		weight++ // every PATCH is a change
		a, err := l.API.Do(ctx, "PATCH", "/upstream/up-edge", "application/x-www-form-urlencoded", fmt.Sprintf("Upstream_weight=%d", weight))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(200), a.Body)
		// The stream is of all specs: without an answer, it ends for them all.
		defer context.AfterFunc(ctx, func() { _ = edge.conn.Close() })()
		r, err := edge.Recv()
		Expect(err).NotTo(HaveOccurred(), "the stream of edge goes on")
		edge.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterType, ResponseNonce: r.GetNonce()})
		l.expectClean(l.Stderr.String(), "the log")
	}, NodeTimeout(time.Minute))

	refused := func(ctx context.Context, list []xdsAttempt) {
		GinkgoHelper()
		const times = 3
		for _, a := range list {
			address := nextAddress()
			before := 0
			if a.reason != "" {
				before = l.refusals(ctx, a.reason)
			}
			for range times {
				code, message := l.try(ctx, a, address)
				Expect(code).To(Equal(a.code), "%s: %s", a.name, message)
				l.expectClean(message, a.name)
				Expect(message).NotTo(ContainSubstring("up-"), a.name)
				Expect(len(message)).To(BeNumerically("<", 600), a.name)
			}
			if a.reason == "" {
				Expect(l.refusedFrom(address)).To(BeEmpty(), a.name)
				continue
			}
			Eventually(func() int { return l.refusals(ctx, a.reason) - before }).Should(Equal(times), "%s: the counter of %s", a.name, a.reason)
			Eventually(l.refusedFrom).WithArguments(address).Should(Equal([]string{a.reason}), "%s: one line for all %d", a.name, times)
		}
	}
	It("is refused with a bad certificate", func(ctx SpecContext) { refused(ctx, byOthers()) }, SpecTimeout(2*time.Minute))
	It("is refused with a certificate for somebody else", func(ctx SpecContext) { refused(ctx, withOtherNames()) }, SpecTimeout(2*time.Minute))
	It("is refused with a bad token, or somebody else's", func(ctx SpecContext) { refused(ctx, withTokens()) }, SpecTimeout(2*time.Minute))
	It("is refused for other calls than an Envoy's", func(ctx SpecContext) { refused(ctx, byOtherCalls()) }, SpecTimeout(2*time.Minute))

	It("gets the same answer for a proxy that exists and one that does not", func(ctx SpecContext) {
		for _, cert := range []*tls.Certificate{nil, l.issued("inner"), l.issued("ratelimit")} {
			for _, call := range []string{callADS, callLRS} {
				told := map[string]bool{}
				for _, node := range []string{"edge", "none"} {
					got := ask(ctx, l.dial(nextAddress(), cert), call, node)
					Expect(got).NotTo(BeNil())
					told[got.Code().String()+strings.ReplaceAll(got.Message(), node, "NODE")] = true
				}
				Expect(told).To(HaveLen(1))
			}
		}
	}, SpecTimeout(time.Minute))

	It("cannot change its identity later", func(ctx SpecContext) {
		s := openStream(ctx, l.dial(nextAddress(), l.issued("inner")))
		s.say(firstRequest("inner", clusterType))
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge"}, TypeUrl: listenerType})
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge"}, TypeUrl: routeType, ResourceNamesSubscribe: []string{"gatehouse"}})
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge"}, TypeUrl: clusterType, ResourceNamesSubscribe: []string{"up-edge"}})
		for routes := ""; routes == ""; {
			r, err := s.Recv()
			Expect(err).NotTo(HaveOccurred())
			Expect(r.String()).NotTo(ContainSubstring("edge.example"))
			Expect(resourceNames(r)).NotTo(ContainElement("up-edge"))
			if r.GetTypeUrl() == routeType {
				routes = r.String()
				Expect(routes).To(ContainSubstring("inner.example"))
			}
			s.say(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge"}, TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
		}
		a, err := l.API.Get(ctx, "/proxy/edge/status")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(a.Body, `"connected_ts"`)).To(Equal(1), a.Body)

		By("in load reports")
		lrs, err := loadv3.NewLoadReportingServiceClient(l.dial(nextAddress(), l.issued("inner"))).StreamLoadStats(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(lrs.Send(&loadv3.LoadStatsRequest{Node: &corev3.Node{Id: "inner"}})).To(Succeed())
		first, err := lrs.Recv()
		Expect(err).NotTo(HaveOccurred())
		Expect(first.String()).NotTo(ContainSubstring("edge"))
		Expect(lrs.Send(&loadv3.LoadStatsRequest{Node: &corev3.Node{Id: "edge"}})).To(Succeed())
		Expect(lrs.CloseSend()).To(Succeed())
		for err == nil {
			first, err = lrs.Recv()
			Expect(first.String()).NotTo(ContainSubstring("edge"))
		}
	}, SpecTimeout(time.Minute))

	It("is refused with another protocol", func(ctx SpecContext) {
		const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		versions := func(low, high uint16, protocols ...string) *tls.Config {
			c := l.tlsConfig(l.issued("edge"))
			c.MinVersion, c.MaxVersion, c.NextProtos = low, high, protocols
			return c
		}
		for _, a := range []struct {
			name, say string
			config    *tls.Config
			reason    string
		}{
			{"HTTP/1.1 without TLS", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", nil, "handshake"},
			{"HTTP/2 without TLS", preface, nil, "handshake"},
			{"noise", strings.Repeat("\x16\x03\x01\xff\xff\x01", 100), nil, "handshake"},
			{"TLS 1.2", preface, versions(tls.VersionTLS12, tls.VersionTLS12, "h2"), "handshake"},
			{"TLS 1.0", preface, versions(tls.VersionTLS10, tls.VersionTLS11, "h2"), "handshake"},
			{"TLS for HTTP/1.1", preface, versions(0, 0, "http/1.1"), "handshake"},
			{"TLS for nothing", preface, versions(0, 0), "handshake"},
		} {
			address := nextAddress()
			for range 3 {
				got := l.say(ctx, address, a.config, a.say)
				Expect(got).NotTo(ContainSubstring("HTTP/"), a.name)
				Expect(got).NotTo(HavePrefix("\x00\x00"), "%s: HTTP/2 settings", a.name)
				l.expectClean(got, a.name)
			}
			Eventually(func() []string { return l.refusedFrom(address) }).Should(Equal([]string{a.reason}), a.name)
		}
		By("HTTP/1.1 over the right TLS")
		got := l.say(ctx, nextAddress(), l.tlsConfig(l.issued("edge")), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		Expect(got).NotTo(ContainSubstring("HTTP/1"))
		l.expectClean(got, "HTTP/1.1")
	}, SpecTimeout(time.Minute))
})

func resourceNames(r *discoveryv3.DeltaDiscoveryResponse) (names []string) {
	for _, x := range r.GetResources() {
		names = append(names, x.GetName())
	}
	return names
}

// say connects from an address, with TLS if there is a config, sends a text and returns the answer
// until the port closes the connection.
func (l *xdsLab) say(ctx context.Context, address string, config *tls.Config, text string) string {
	GinkgoHelper()
	conn, err := from(address).DialContext(ctx, "tcp", l.XDSAddr)
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	Expect(conn.SetDeadline(time.Now().Add(20 * time.Second))).To(Succeed())
	if config != nil {
		t := tls.Client(conn, config)
		if t.HandshakeContext(ctx) != nil {
			return ""
		}
		conn = t
	}
	_, _ = conn.Write([]byte(text)) // it may be closed already
	return readAll(conn)
}

// readAll returns what comes until the other side closes.
func readAll(conn net.Conn) string {
	GinkgoHelper()
	var all strings.Builder
	b := make([]byte, 4096)
	for {
		n, err := conn.Read(b)
		all.Write(b[:n])
		if err != nil {
			Expect(err).NotTo(MatchError(os.ErrDeadlineExceeded), "the port holds the connection")
			return all.String()
		}
	}
}
