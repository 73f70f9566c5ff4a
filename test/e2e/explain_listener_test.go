package e2e_test

import (
	"net"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Explain about a listener that Envoy refused", func() {
	It("reports that it accepts no connection, or which older one does", func() {
		g := serve()
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "*", "blue")
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(taken.Close)
		takenPort := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
		post(g.API, "/proxy", "Name=gw", "Http_port="+takenPort, "Listen_ip=127.0.0.1")
		post(g.API, "/proxy/gw/service/shop")
		envoyFor("gw", g.XDSAddr)
		explained := func() string { return read(g.API, "/proxy/gw/explain?url=http://shop.example/") }
		Eventually(explained).Should(And(
			ContainSubstring(`"basis":"envoys"`), ContainSubstring(`"code":"no_listener"`),
			ContainSubstring("Envoy refused listener http-127.0.0.1:"+takenPort+", so nothing accepts the connection: "),
			ContainSubstring("Address already in use"), Not(ContainSubstring("goes to blue"))))

		By("an older listener remains")
		port := freePort()
		change := func(port string) {
			GinkgoHelper()
			a, err := g.API.Do(limit(), "PATCH", "/proxy/gw", "application/x-www-form-urlencoded", "Http_port="+port)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(200), a.Body)
		}
		change(strconv.Itoa(port))
		gw := gateway{g.API, port}
		gw.expect("shop.example", "/", "blue")
		// Envoy may serve before its acknowledgement has been read.
		Eventually(explained).Should(ContainSubstring(`"message":"listener http-127.0.0.1:` + strconv.Itoa(port) + ` accepts the connection"`))
		change(takenPort)
		Eventually(explained).Should(And(ContainSubstring(`"code":"forwarded"`), ContainSubstring(
			"listener http-127.0.0.1:"+strconv.Itoa(port)+" accepts the connection; Envoy refused http-127.0.0.1:"+takenPort+", which is to replace it: ")))
		Expect(gw.answers("shop.example", "/")).To(Equal("blue"))
	})
})
