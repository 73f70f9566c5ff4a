package kubernetes_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// udpBackend runs a server that answers datagrams with its name.
func udpBackend(name string) int {
	GinkgoHelper()
	socket, err := net.ListenPacket("udp", net.JoinHostPort(ownAddress(), "0"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(socket.Close)
	go func() {
		buffer := make([]byte, 100)
		for {
			_, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = socket.WriteTo([]byte(name), from)
		}
	}()
	return socket.LocalAddr().(*net.UDPAddr).Port
}

// datagram sends one to a port, and returns the answer.
func datagram(port int) string {
	c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = c.Close() }()
	buffer := make([]byte, 100)
	_ = c.SetDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte("who"))
	n, err := c.Read(buffer)
	if err != nil {
		return err.Error()
	}
	return string(buffer[:n])
}

// answererOver returns the name of the backend that answers a request over TLS for a host at a port.
func answererOver(authority *testkit.Authority, port int, host string) string {
	res, err := clientOf(port, authority).Get("https://" + host + "/")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	return res.Header.Get(testkit.BackendHeader)
}

var _ = Describe("Routes of connections", func() {
	It("take the connections of a port, of which the oldest route gets them", func() {
		e := newEdge(nil)
		e.service("blue", backend("blue"))
		e.service("green", backend("green"))
		at := e
		at.port = freePort()
		udp := freePort()
		e.apply("apiVersion: v1\nkind: Service\nmetadata: {name: dns}\nspec: {ports: [{name: dns, port: 53, protocol: UDP}]}\n")
		e.apply(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: dns-1, labels: {kubernetes.io/service-name: dns}}
addressType: IPv4
ports: [{name: dns, port: %d, protocol: UDP}]
endpoints: [{addresses: [%q], conditions: {ready: true}}]
`, udpBackend("who are you"), ownAddress())
		e.listeners(fmt.Sprintf("%s\n  - {name: tcp, port: %d, protocol: TCP}\n  - {name: udp, port: %d, protocol: UDP}\n  - {name: taken, port: %d, protocol: TCP}", anyHTTP, at.port, udp, e.port))
		const to = "rules: [{backendRefs: [{name: %s, port: %d}]}]"
		e.routeOf("TCPRoute", e.place, "second", "  "+fmt.Sprintf(to, "blue", 80))
		e.routeOf("UDPRoute", e.place, "dns", "  "+fmt.Sprintf(to, "dns", 53))
		at.expect("any.example", "200 blue")
		Eventually(func() string { return datagram(udp) }).Should(Equal("who are you"))
		Eventually(e.parent("tcproute/second", "gateway.gatehouse.dev/Programmed")).Should(Equal("True Programmed"))
		Eventually(e.parent("udproute/dns", "Accepted")).Should(Equal("True Accepted"))

		By("a younger one, and one for a listener that cannot be")
		created := e.jsonPath("tcproute", "second", "{.metadata.creationTimestamp}")
		Eventually(e.now).ShouldNot(Equal(created), "creation times are in seconds")
		e.routeOf("TCPRoute", e.place, "first", "  "+fmt.Sprintf(to, "green", 80))
		e.routeOf("TCPRoute", e.place, "taken", fmt.Sprintf("  parentRefs: [{name: web, sectionName: taken}]\n  "+to, "green", 80))
		e.routeOf("TCPRoute", e.place, "missing", fmt.Sprintf("  parentRefs: [{name: web, sectionName: udp}]\n  "+to, "nowhere", 80))
		Eventually(e.parent("tcproute/first", "Accepted")).Should(Equal("True Accepted"))
		Expect(at.request("any.example", "/")).To(Equal("200 blue"))
		Eventually(e.parent("tcproute/taken", "Accepted")).Should(Equal("False NoMatchingParent"))
		Eventually(e.parent("tcproute/missing", "Accepted")).Should(Equal("False NotAllowedByListeners"))
		Expect(e.parent("tcproute/missing", "ResolvedRefs")()).To(Equal("False BackendNotFound"))
		Eventually(func() string {
			return e.jsonPath("gateway", "web", `{range .status.listeners[*]}{.name} {.attachedRoutes} {.conditions[?(@.type=="Accepted")].reason}{", "}{end}`)
		}).Should(Equal("http 0 Accepted, tcp 2 Accepted, udp 1 Accepted, taken 3 PortUnavailable, "))
		e.kubectl("delete", "tcproute", "second")
		at.expect("any.example", "200 green")
		e.kubectl("delete", "tcproute", "--all")
		Eventually(func() string { return at.request("any.example", "/") }).Should(ContainSubstring("refused"))
	})

	It("take TLS connections by the host name that they ask for", func() {
		e := newEdge(nil)
		authority, err := testkit.NewAuthority("backends")
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"blue", "green"} {
			pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"a.shop.example", "b.shop.example", "web.example"}})
			Expect(err).NotTo(HaveOccurred())
			certificate, err := pair.TLS()
			Expect(err).NotTo(HaveOccurred())
			b, err := testkit.StartBackend(name, testkit.BackendOptions{
				Protocol: "tls", IP: ownAddress(), TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(b.Close)
			e.service(name, b)
		}
		over := func(host string) string { return answererOver(authority, e.securePort, host) }
		e.listeners(anyHTTP + `
  - {name: tls, port: 443, protocol: TLS, hostname: "*.shop.example", tls: {mode: Passthrough}}
  - {name: ended, port: 443, protocol: TLS, hostname: "ended.example", tls: {mode: Terminate, certificateRefs: [{name: none}]}}`)
		const to = "rules: [{backendRefs: [{name: %s, port: 80}]}]"
		e.routeOf("TLSRoute", e.place, "a", "  hostnames: [a.shop.example]\n  "+fmt.Sprintf(to, "blue"))
		e.routeOf("TLSRoute", e.place, "rest", "  hostnames: [\"*.shop.example\"]\n  "+fmt.Sprintf(to, "green"))
		e.routeOf("TLSRoute", e.place, "web", "  hostnames: [web.example]\n  "+fmt.Sprintf(to, "green"))
		Eventually(func() string { return over("a.shop.example") }).Should(Equal("blue"))
		Eventually(func() string { return over("b.shop.example") }).Should(Equal("green"))
		Expect(over("web.example")).To(Or(HaveSuffix("EOF"), HaveSuffix("connection reset by peer")), "nobody has a certificate")
		Eventually(e.parent("tlsroute/web", "Accepted")).Should(Equal("False NoMatchingListenerHostname"))
		Eventually(func() string {
			return e.jsonPath("gateway", "web", `{range .status.listeners[*]}{.name} {.supportedKinds[*].kind} {.conditions[?(@.type=="Accepted")].reason}{", "}{end}`)
		}).Should(Equal("http HTTPRoute GRPCRoute Accepted, tls TLSRoute Accepted, ended TLSRoute Accepted, "))

		By("an HTTPRoute that wants the host, too")
		e.route(e.place, "a", "  hostnames: [a.shop.example]\n  rules: [{backendRefs: [{name: green, port: 80}]}]")
		Eventually(e.parent("tlsroute/a", "Accepted")).Should(Equal("False HostConflict"))
		Eventually(func() string { return over("a.shop.example") }).ShouldNot(Equal("blue"))
		e.kubectl("delete", "httproute", "a")
		Eventually(func() string { return over("a.shop.example") }).Should(Equal("blue"))
	})

	It("take TLS connections that the gateway decrypts, beside those that it passes on", func() {
		e := newEdge(nil)
		authority, err := testkit.NewAuthority("decrypted")
		Expect(err).NotTo(HaveOccurred())
		e.pair(authority, "pair", "plain.example")
		e.service("plain", backend("plain"))
		pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"passed.example"}})
		Expect(err).NotTo(HaveOccurred())
		certificate, err := pair.TLS()
		Expect(err).NotTo(HaveOccurred())
		b, err := testkit.StartBackend("passed", testkit.BackendOptions{
			Protocol: "tls", IP: ownAddress(), TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(b.Close)
		e.service("passed", b)
		more := freePort()
		list := anyHTTP
		for name, port := range map[string]int{"own": 443, "more": more} {
			list += fmt.Sprintf(`
  - {name: %[1]s-plain, port: %[2]d, protocol: TLS, hostname: plain.example, tls: {mode: Terminate, certificateRefs: [{name: pair}]}}
  - {name: %[1]s-passed, port: %[2]d, protocol: TLS, hostname: passed.example, tls: {mode: Passthrough}}`, name, port)
		}
		e.listeners(list)
		for _, name := range []string{"plain", "passed"} {
			e.routeOf("TLSRoute", e.place, name, fmt.Sprintf("  hostnames: [%s.example]\n  rules: [{backendRefs: [{name: %s, port: 80}]}]", name, name))
		}
		for _, port := range []int{e.securePort, more} {
			for _, name := range []string{"plain", "passed"} {
				Eventually(func() string { return answererOver(authority, port, name+".example") }).Should(Equal(name))
			}
			Expect(answererOver(authority, port, "other.example")).To(Or(HaveSuffix("EOF"), HaveSuffix("connection reset by peer")))
		}
		Eventually(e.parent("tlsroute/plain", "gateway.gatehouse.dev/Programmed")).Should(Equal("True Programmed"))

		By("without its certificate, nothing is passed on as it is")
		e.kubectl("delete", "secret", "pair")
		Eventually(e.parent("tlsroute/plain", "Accepted")).Should(HavePrefix("False "))
		for _, port := range []int{e.securePort, more} {
			Eventually(func() string { return answererOver(authority, port, "plain.example") }).Should(Or(HaveSuffix("EOF"), HaveSuffix("connection reset by peer")))
			Expect(answererOver(authority, port, "passed.example")).To(Equal("passed"))
		}
		Eventually(e.listener("own-plain", "ResolvedRefs")).Should(Equal("False InvalidCertificateRef"))
	})
})
