package e2e_test

import (
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// connectedWith runs an Envoy of proxy gw with additional arguments for its bootstrap.
func connectedWith(xdsAddr string, more ...string) *testkit.Envoy {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	bootstrap, err := testkit.PrintBootstrap(limit(), "gw", xdsAddr, append([]string{"--admin-socket", filepath.Join(dir, "admin.sock")}, more...)...)
	Expect(err).NotTo(HaveOccurred())
	e, err := testkit.RunEnvoy(limit(), dir, bootstrap)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Kill)
	return e
}

func ownAddress() string {
	GinkgoHelper()
	ip, err := testkit.OwnAddress()
	Expect(err).NotTo(HaveOccurred())
	return ip
}

var _ = Describe("An Envoy elsewhere", func() {
	It("listens only on the loopback as a sidecar, otherwise where the proxy says, and follows changes", func() {
		g := serve()
		b := backend("blue")
		port, other := freePort(), freePort()
		specificationCalls(through(g.API), b, "Http_port="+strconv.Itoa(port), "Listen_ip=0.0.0.0")
		sidecar := connectedWith(g.XDSAddr, "--sidecar")
		gateway{g.API, port}.expect("shop.example", "/", "blue")
		Expect(read(sidecar.Admin, "/listeners")).To(Equal("http-127.0.0.1:" + strconv.Itoa(port) + "::127.0.0.1:" + strconv.Itoa(port) + "\n"))
		_, err := net.Dial("tcp", net.JoinHostPort(ownAddress(), strconv.Itoa(port)))
		Expect(err).To(MatchError(ContainSubstring("connection refused")))

		By("moving the proxy, which is live in the sidecar when the call says so")
		a, err := g.API.Do(limit(), http.MethodPatch, "/proxy/gw?wait=applied", "application/json", `{"Http_port":`+strconv.Itoa(other)+`}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		gateway{g.API, other}.expect("shop.example", "/", "blue")
		Expect(read(sidecar.Admin, "/listeners")).To(Equal("http-127.0.0.1:" + strconv.Itoa(other) + "::127.0.0.1:" + strconv.Itoa(other) + "\n"))

		By("stopping it, so that an Envoy that is no sidecar can have the port")
		Expect(sidecar.Kill()).To(Succeed())
		edge := connectedWith(g.XDSAddr)
		gateway{g.API, other}.expect("shop.example", "/", "blue")
		Expect(read(edge.Admin, "/listeners")).To(Equal("http-0.0.0.0:" + strconv.Itoa(other) + "::0.0.0.0:" + strconv.Itoa(other) + "\n"))
	})

	It("reports about itself what its bootstrap has, including JSON", func() {
		g := serve()
		e := connectedWith(g.XDSAddr, "--format", "json", "--node-metadata", "zone=a,build=7", "--node-metadata", "rack=4", "--stats-tags", "zone=a")
		Expect(read(e.Admin, "/server_info")).To(And(ContainSubstring(`"build": "7"`), ContainSubstring(`"rack": "4"`), ContainSubstring(`"zone": "a"`)))
		Expect(read(e.Admin, "/stats/prometheus")).To(ContainSubstring(`envoy_server_live{zone="a"} 1`))
	})
})
