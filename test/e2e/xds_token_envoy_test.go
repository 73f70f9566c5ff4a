package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// envoyWithToken starts an Envoy of a proxy with a token, and additional arguments for its
// bootstrap.
func envoyWithToken(proxy, xdsAddr, token string, more ...string) (*testkit.Envoy, error) {
	GinkgoHelper()
	return envoyWithin(limit(), proxy, xdsAddr, token, more...)
}

// envoyWithin is envoyWithToken for an Envoy that may be refused, until ctx ends; an empty
// token means none.
func envoyWithin(ctx context.Context, proxy, xdsAddr, token string, more ...string) (*testkit.Envoy, error) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	more = append([]string{"--admin-socket", filepath.Join(dir, "admin.sock")}, more...)
	if token != "" {
		file := filepath.Join(dir, "token")
		Expect(os.WriteFile(file, []byte(token+"\n"), 0o600)).To(Succeed())
		more = append(more, "--xds-token-file", file)
	}
	bootstrap, err := testkit.PrintBootstrap(limit(), proxy, xdsAddr, more...)
	Expect(err).NotTo(HaveOccurred())
	return testkit.RunEnvoy(ctx, dir, bootstrap)
}

var _ = Describe("An Envoy with a token", func() {
	It("is served until the token is revoked, and continues to serve", func() {
		g := serve()
		port := freePort()
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "*", "blue")
		addProxy(g.API, "edge", port, "shop")
		token := xdsToken(g.API, "/proxy/edge/token", "one")
		e, err := envoyWithToken("edge", g.XDSAddr, token)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(e.Kill)
		gw := gateway{g.API, port}
		gw.expect("shop.test", "/", "blue")
		Eventually(statOf).WithArguments(e, "control_plane.connected_state").Should(Equal("1"))
		Eventually(statOf).WithArguments(e, "cluster.gatehouse_xds.upstream_rq_active").Should(Equal("2"), "its load reports are taken too")
		Expect(refusalsOf(g)).To(BeEmpty())
		Eventually(read).WithArguments(g.API, "/proxy/edge/token/one").ShouldNot(ContainSubstring(`"last_used_ts":null`))

		By("revoking it under traffic")
		_, stop := gw.traffic("shop.test", 50)
		remove(g.API, "/proxy/edge/token/one")
		Eventually(statOf).WithArguments(e, "control_plane.connected_state").Should(Equal("0"))
		Eventually(refusalsOf).WithArguments(g).Should(ContainElements("ended", "token"))
		post(g.API, "/service/shop/route", "Route_Name=late", "Route_prefix=/late")
		post(g.API, "/service/shop/route/late/upstream/blue")
		gw.expect("shop.test", "/", "blue")
		stop()
		Eventually(statOf).WithArguments(e, "control_plane.connected_state").Should(Equal("0"), "it is 1 for a moment whenever Envoy tries again")
		for _, text := range []string{g.Stderr.String(), read(g.API, "/status")} {
			Expect(text).NotTo(ContainSubstring(strings.TrimPrefix(token, "ghx_")))
		}

		By("starting it again with a new one")
		Expect(e.Kill()).To(Succeed())
		e, err = envoyWithToken("edge", g.XDSAddr, xdsToken(g.API, "/proxy/edge/token", "two"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(e.Kill)
		gw.expect("shop.test", "/", "blue")
	})

	It("keeps its stream when its proxy is deleted, and receives an empty configuration", func() {
		g := serve()
		port := freePort()
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "*", "blue")
		addProxy(g.API, "edge", port, "shop")
		e, err := envoyWithToken("edge", g.XDSAddr, xdsToken(g.API, "/proxy/edge/token", "one"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(e.Kill)
		gateway{g.API, port}.expect("shop.test", "/", "blue")
		remove(g.API, "/proxy/edge/service/shop")
		remove(g.API, "/proxy/edge?force=true")
		Eventually(read).WithArguments(e.Admin, "/listeners").ShouldNot(ContainSubstring(strconv.Itoa(port)))
		Expect(read(g.API, "/proxy/edge/token")).To(ContainSubstring(`"name":"one"`))
		Expect(statOf(e, "control_plane.connected_state")).To(Equal("1"))
		remove(g.API, "/proxy/edge/token/one")
		Eventually(statOf).WithArguments(e, "control_plane.connected_state").Should(Equal("0"))
	})
})

// statOf returns one statistic of an Envoy; "" if there is none with that name.
func statOf(e *testkit.Envoy, name string) string {
	GinkgoHelper()
	for line := range strings.Lines(read(e.Admin, "/stats?filter=^"+name+"$")) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+": "); ok {
			return value
		}
	}
	return ""
}
