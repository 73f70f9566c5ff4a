package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// mustRun runs a command of the program that must succeed.
func mustRun(args ...string) {
	GinkgoHelper()
	code, _, stderr := run(nil, args...)
	Expect(code).To(BeZero(), stderr)
}

// authorityDir returns a directory of "gatehouse pki" with a certificate for the control
// plane and one for proxy gw.
func authorityDir() string {
	GinkgoHelper()
	dir := filepath.Join(GinkgoT().TempDir(), "pki")
	mustRun("pki", "init", dir)
	mustRun("pki", "issue", dir, "server", "--host", "127.0.0.1")
	mustRun("pki", "issue", dir, "proxy", "gw")
	return dir
}

// provenPlane runs a control plane with the certificates of a directory, and a service for
// every host in front of a backend at the returned gateway.
func provenPlane(dir string) (*testkit.Gatehouse, gateway) {
	GinkgoHelper()
	join := func(name string) string { return filepath.Join(dir, name) }
	g := serve("--xds-tls-cert", join("server.crt"), "--xds-tls-key", join("server.key"),
		"--xds-tls-client-ca", join("ca.crt"), "--xds-tls-client-crl", join("ca.crl"))
	gw := gateway{g.API, freePort()}
	specificationCalls(through(g.API), backend("blue"), "Http_port="+strconv.Itoa(gw.port), "Listen_ip=127.0.0.1")
	return g, gw
}

// serials returns the serial numbers of the certificates that an Envoy presents to its
// control plane.
func serials(admin testkit.API) (list []string) {
	GinkgoHelper()
	var answer struct {
		Certificates []struct {
			Chain []struct {
				Serial string `json:"serial_number"`
				Path   string
			} `json:"cert_chain"`
		}
	}
	Expect(json.Unmarshal([]byte(read(admin, "/certs")), &answer)).To(Succeed())
	for _, c := range answer.Certificates {
		for _, one := range c.Chain {
			list = append(list, one.Serial)
		}
	}
	return list
}

// stat returns one statistic of an Envoy.
func stat(admin testkit.API, name string) func() string {
	return func() string { return read(admin, "/stats?filter=^"+name+"$") }
}

var _ = Describe("An Envoy with a certificate", func() {
	const connected, connections = "control_plane.connected_state", "cluster.gatehouse_xds.upstream_cx_total"

	DescribeTable("uses a new one without losing its stream or a request, and reconnects with it",
		func(connect func(xdsAddr string, settings ...string) testkit.API) {
			dir := authorityDir()
			g, gw := provenPlane(dir)
			admin := connect(g.XDSAddr, "--xds-tls-ca", filepath.Join(dir, "ca.crt"),
				"--xds-tls-cert", filepath.Join(dir, "gw.crt"), "--xds-tls-key", filepath.Join(dir, "gw.key"))
			gw.expect("shop.example", "/", "blue")
			old := serials(admin)
			Expect(old).To(HaveLen(1))
			Expect(stat(admin, connections)()).To(Equal(connections + ": 1\n"))
			_, stop := gw.traffic("shop.example", 50)

			By("replacing certificate and key while it is connected")
			mustRun("pki", "issue", dir, "proxy", "gw", "--force")
			Eventually(func() []string { return serials(admin) }).ShouldNot(Equal(old))
			Expect(stat(admin, connections)()).To(Equal(connections+": 1\n"), "the old connection goes on")
			Expect(stat(admin, connected)()).To(Equal(connected + ": 1\n"))

			By("revoking the old one, which ends its stream")
			mustRun("pki", "revoke", dir, old[0])
			Eventually(stat(admin, connections)).Should(Equal(connections + ": 2\n"))
			Eventually(stat(admin, connected)).Should(Equal(connected + ": 1\n"))
			post(g.API, "/service", "Service_Name=late", "fqdn=late.example")
			post(g.API, "/service/late/route", "Route_Name=root", "Route_prefix=/")
			post(g.API, "/service/late/route/root/upstream/blue")
			post(g.API, "/proxy/gw/service/late?wait=applied")
			gw.expect("late.example", "/", "blue")
			stop()

			By("revoking the new one, too: it serves on with what it has")
			mustRun("pki", "revoke", dir, "gw.crt")
			Eventually(stat(admin, connected)).Should(Equal(connected + ": 0\n"))
			gw.expect("late.example", "/", "blue")
		},
		Entry("with gatehouse envoy", func(xdsAddr string, settings ...string) testkit.API {
			GinkgoHelper()
			e := command(xdsAddr, settings...)
			Eventually(e.state).Should(Equal("LIVE"))
			return e.admin
		}),
		Entry("with gatehouse bootstrap --sds-dir", func(xdsAddr string, settings ...string) testkit.API {
			GinkgoHelper()
			return connectedWith(xdsAddr, append(settings, "--sds-dir", GinkgoT().TempDir())...).Admin
		}),
	)

	DescribeTable("does not talk to the wrong control plane",
		func(counter string, change func(dir string) []string) {
			dir := authorityDir()
			g, gw := provenPlane(dir)
			settings := append([]string{"--xds-tls-ca", filepath.Join(dir, "ca.crt"),
				"--xds-tls-cert", filepath.Join(dir, "gw.crt"), "--xds-tls-key", filepath.Join(dir, "gw.key")}, change(dir)...)
			e := command(g.XDSAddr, settings...)
			Eventually(e.admin.Get).WithArguments(limit(), "/stats?filter="+counter).Should(HaveField("Body", MatchRegexp(`: [1-9]`)))
			Expect(read(e.admin, "/listeners")).To(BeEmpty())
			_, err := gw.send("GET", "shop.example", "/")
			Expect(err).To(HaveOccurred())
		},
		Entry("by its name", "ssl.fail_verify_san$", func(string) []string { return []string{"--xds-tls-server-name", "other.example"} }),
		Entry("by its address", "ssl.fail_verify_san$", func(string) []string { return []string{"--xds-tls-server-name", "127.0.0.2"} }),
		Entry("by its authority", "ssl.fail_verify_error$", func(string) []string {
			other := filepath.Join(GinkgoT().TempDir(), "other")
			mustRun("pki", "init", other)
			return []string{"--xds-tls-ca", filepath.Join(other, "ca.crt")}
		}),
	)

	It("is served with a token in place of the certificate", func() {
		dir := authorityDir()
		g, gw := provenPlane(dir)
		file := filepath.Join(GinkgoT().TempDir(), "token")
		Expect(os.WriteFile(file, []byte(xdsToken(g.API, "/proxy/gw/token", "one")+"\n"), 0o600)).To(Succeed())
		e := command(g.XDSAddr, "--xds-tls-ca", filepath.Join(dir, "ca.crt"), "--xds-token-file", file)
		gw.expect("shop.example", "/", "blue")
		Eventually(stat(e.admin, "cluster.gatehouse_xds.upstream_rq_active")).Should(Equal("cluster.gatehouse_xds.upstream_rq_active: 2\n"), "with its load reports")
		Expect(stat(e.admin, connected)()).To(Equal(connected + ": 1\n"))
	})

	It("is not started if the certificate is another proxy's", func() {
		dir := authorityDir()
		mustRun("pki", "issue", dir, "proxy", "edge")
		p, err := testkit.SpawnGatehouse(nil, "envoy", "--proxy", "gw", "--xds-tls-ca", filepath.Join(dir, "ca.crt"),
			"--xds-tls-cert", filepath.Join(dir, "edge.crt"), "--xds-tls-key", filepath.Join(dir, "edge.key"))
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Wait(limit())).To(Equal(2))
		Expect(p.Stderr.String()).To(Equal(`gatehouse: --xds-tls-cert: ` + dir + `/edge.crt is for edge and not for proxy "gw": issue one with "gatehouse pki issue DIR proxy gw"` + "\n"))
	})
})
