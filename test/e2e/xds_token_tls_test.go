package e2e_test

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// xdsPKI is a directory of gatehouse pki, with the certificate of a control plane.
type xdsPKI string

func newXDSPKI() xdsPKI {
	GinkgoHelper()
	dir := xdsPKI(filepath.Join(GinkgoT().TempDir(), "pki"))
	dir.run("init", string(dir))
	dir.run("issue", string(dir), "server", "--host", "127.0.0.1")
	return dir
}

func (d xdsPKI) run(args ...string) {
	GinkgoHelper()
	p, err := testkit.SpawnGatehouse(nil, append([]string{"pki"}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	code, err := p.Wait(limit())
	Expect(err).NotTo(HaveOccurred())
	Expect(code).To(BeZero(), p.Stderr.String())
}

func (d xdsPKI) file(name string) string { return filepath.Join(string(d), name) }

// serve runs a control plane whose xDS port uses TLS.
func (d xdsPKI) serve(args ...string) *testkit.Gatehouse {
	GinkgoHelper()
	return serve(append([]string{"--xds-tls-cert", d.file("server.crt"), "--xds-tls-key", d.file("server.key")}, args...)...)
}

// port returns the xDS port of a control plane, for a client with the certificates of these
// names.
func (d xdsPKI) port(g *testkit.Gatehouse, names ...string) xdsPort {
	GinkgoHelper()
	pem, err := os.ReadFile(d.file("ca.crt"))
	Expect(err).NotTo(HaveOccurred())
	ca, err := testkit.ReadAuthority(string(pem))
	Expect(err).NotTo(HaveOccurred())
	config := &tls.Config{RootCAs: ca.Pool()}
	for _, name := range names {
		pair, err := tls.LoadX509KeyPair(d.file(name+".crt"), d.file(name+".key"))
		Expect(err).NotTo(HaveOccurred())
		config.Certificates = append(config.Certificates, pair)
	}
	return xdsPort{g.XDSAddr, credentials.NewTLS(config)}
}

// xdsRefusals returns how many clients of the xDS port were refused for a reason.
func xdsRefusals(g *testkit.Gatehouse, reason string) int {
	GinkgoHelper()
	_, after, _ := strings.Cut(read(g.API, "/metrics"), `gatehouse_xds_refusals_total{reason="`+reason+`"} `)
	line, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(line)
	Expect(err).NotTo(HaveOccurred())
	return n
}

var _ = Describe("The xDS port with TLS and tokens", func() {
	It("serves an Envoy with its token, until that is revoked, and nobody without proof", func() {
		pki := newXDSPKI()
		g := pki.serve()
		edgePort := freePort()
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "*", "blue")
		addProxy(g.API, "edge", edgePort, "shop")
		addProxy(g.API, "inner", freePort())
		edge, inner := xdsToken(g.API, "/proxy/edge/token", "one"), xdsToken(g.API, "/proxy/inner/token", "one")
		e, err := envoyWithToken("edge", g.XDSAddr, edge, "--xds-tls-ca", pki.file("ca.crt"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(e.Kill)
		gw := gateway{g.API, edgePort}
		gw.expect("shop.test", "/", "blue")
		Eventually(statOf).WithArguments(e, "cluster.gatehouse_xds.upstream_rq_active").Should(Equal("2"))
		Expect(statOf(e, "cluster.gatehouse_xds.ssl.connection_error")).To(BeElementOf("", "0"))

		p := pki.port(g)
		for _, call := range []string{deltaADS, loads, sotwADS, fetch} {
			for _, node := range []string{"edge", "ratelimit", "none"} {
				Expect(status.Code(p.ask(call, node))).To(Equal(codes.Unauthenticated), "%s as %s without a proof", call, node)
			}
		}
		Expect(status.Code(p.ask(deltaADS, "edge", bearer(inner)...))).To(Equal(codes.PermissionDenied))
		Expect(status.Code(p.ask(fetch, "edge", bearer(inner)...))).To(Equal(codes.Unimplemented))
		Expect(xdsPort{addr: g.XDSAddr}.ask(deltaADS, "edge", bearer(edge)...)).NotTo(Succeed(), "not encrypted")

		_, stop := gw.traffic("shop.test", 50)
		remove(g.API, "/proxy/edge/token/one")
		Eventually(statOf).WithArguments(e, "control_plane.connected_state").Should(Equal("0"))
		Eventually(refusalsOf).WithArguments(g).Should(ContainElements("ended", "token"))
		gw.expect("shop.test", "/", "blue")
		stop()
	})

	It("gives an Envoy nothing for another's token, the engine's, a revoked one or none", func() {
		pki := newXDSPKI()
		g := pki.serve()
		edge, inner, engine := twoProxies(g.API)
		remove(g.API, "/proxy/edge/token/one")
		for _, c := range []struct{ token, reason, told string }{
			{inner, "proxy", "token one may not use the node id"}, {engine, "proxy", "token one may not use the node id"},
			{edge, "token", "the token is not valid here"}, {"", "none", "the client does not authenticate"},
		} {
			before := xdsRefusals(g, c.reason)
			ctx, cancel := context.WithCancel(limit())
			ended := make(chan string, 1)
			go func() {
				defer GinkgoRecover()
				e, err := envoyWithin(ctx, "edge", g.XDSAddr, c.token, "--xds-tls-ca", pki.file("ca.crt"))
				if e != nil {
					err = errors.Join(errors.New("it has a configuration"), e.Kill())
				}
				ended <- err.Error() // with what it has logged
			}()
			Eventually(xdsRefusals).WithArguments(g, c.reason).Should(BeNumerically(">=", before+4), "both streams, again and again")
			cancel()
			var log string
			Eventually(ended).Should(Receive(&log))
			Expect(log).To(And(ContainSubstring(c.told), Not(ContainSubstring("it has a configuration"))))
			Expect(log).NotTo(Or(ContainSubstring(`"inner"`), ContainSubstring("ghx_")), "it does not learn whose token it is")
		}
		Expect(read(g.API, "/status")).NotTo(ContainSubstring(`"envoy"`))
	})

	It("serves the rate-limit engine with a token or its certificate, and not with an Envoy's", func() {
		pki, redis := newXDSPKI(), startRedis()
		pki.run("issue", string(pki), "ratelimit")
		pki.run("issue", string(pki), "proxy", "edge")
		g := pki.serve("--xds-tls-client-ca", pki.file("ca.crt"))
		edge, _, token := twoProxies(g.API)
		encrypted := []string{"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_SERVER_TLS_CACERT=" + pki.file("ca.crt")}
		with := func(env ...string) *testkit.Ratelimit {
			GinkgoHelper()
			return engineAt(g.XDSAddr, redis.Addr, append(env, encrypted...)...)
		}
		certificate := func(name string) []string {
			return []string{"CONFIG_GRPC_XDS_CLIENT_TLS_CERT=" + pki.file(name+".crt"), "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=" + pki.file(name+".key")}
		}
		for _, proof := range [][]string{{engineToken(token)}, certificate("ratelimit"), append(certificate("ratelimit"), engineToken(token))} {
			e := with(proof...)
			Expect(e.WaitReady(limit())).To(Succeed())
			Eventually(engines).WithArguments(g.API).Should(Equal(1))
			Expect(e.Kill()).To(Succeed())
			Eventually(engines).WithArguments(g.API).Should(BeZero())
		}
		Expect(refusalsOf(g)).To(BeEmpty())
		for reason, proof := range map[string][]string{"none": nil, "ratelimit": certificate("edge")} {
			e := with(proof...)
			Eventually(refusalsOf).WithArguments(g).Should(ContainElement(reason))
			Expect(engines(g.API)).To(BeZero())
			Expect(e.Kill()).To(Succeed())
		}

		By("using two proofs, each of which must allow it")
		both := pki.port(g, "edge")
		Expect(both.ask(deltaADS, "edge", bearer(edge)...)).To(Succeed())
		Expect(status.Code(both.ask(sotwADS, "ratelimit", bearer(token)...))).To(Equal(codes.PermissionDenied))
		Expect(status.Code(both.ask(deltaADS, "edge", bearer(token)...))).To(Equal(codes.PermissionDenied))
		Expect(status.Code(both.ask(deltaADS, "edge", bearer(edge+"A")...))).To(Equal(codes.Unauthenticated))
		Expect(status.Code(pki.port(g, "ratelimit").ask(deltaADS, "edge"))).To(Equal(codes.PermissionDenied))
	})
})
