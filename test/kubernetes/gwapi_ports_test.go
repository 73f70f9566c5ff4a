package kubernetes_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// at is the edge, asked at another port.
func (e edge) at(port int) edge {
	e.port = port
	return e
}

// kept returns a function that sends a request for a host on one connection to a port.
func kept(port int, host string) func() (int, error) {
	GinkgoHelper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	in := bufio.NewReader(conn)
	return func() (int, error) {
		if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
			return 0, err
		}
		if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
			return 0, err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return 0, err
		}
		defer func() { _ = res.Body.Close() }()
		if res.Close {
			return 0, fmt.Errorf("the connection is to be closed")
		}
		return res.StatusCode, nil
	}
}

var _ = Describe("The listeners of a Gateway at several ports", func() {
	It("have their own routes, and come and go alone", func() {
		e := newEdge(nil)
		authority, err := testkit.NewAuthority("ports")
		Expect(err).NotTo(HaveOccurred())
		e.pair(authority, "pair", "a.example", "b.example")
		for _, name := range []string{"blue", "green", "red"} {
			e.service(name, backend(name))
		}
		more, secure, third := e.at(freePort()), freePort(), e.at(freePort())
		tls := "tls: {certificateRefs: [{name: pair}]}"
		listeners := func(more ...string) {
			list := "  - {name: http, port: 80, protocol: HTTP}\n  - {name: https, port: 443, protocol: HTTPS, hostname: b.example, " + tls + "}"
			for _, one := range more {
				list += "\n  - " + one
			}
			e.listeners(list)
		}
		second := fmt.Sprintf("{name: second, port: %d, protocol: HTTP}", more.port)
		listeners(second, fmt.Sprintf("{name: a, port: %d, protocol: HTTP, hostname: a.example}", more.port),
			fmt.Sprintf("{name: secure, port: %d, protocol: HTTPS, hostname: b.example, %s}", secure, tls))
		route := func(name, parent, hosts, backend string) {
			GinkgoHelper()
			e.route(e.place, name, fmt.Sprintf("  parentRefs: [{name: web, %s}]\n  hostnames: [%s]\n  rules: [{backendRefs: [{name: %s, port: 80}]}]", parent, hosts, backend))
		}
		route("eighty", "port: 80", "a.example, c.example", "blue")
		route("second", fmt.Sprintf("port: %d, sectionName: second", more.port), "a.example, c.example", "green")
		route("secure", "sectionName: secure", "b.example", "red")
		route("wrong", "port: 80, sectionName: second", "d.example", "red")

		By("a request goes to the routes of its port")
		e.expect("a.example", "200 blue")
		more.expect("c.example", "200 green")
		e.expect("c.example", "200 blue")
		more.expect("a.example", "404")
		Eventually(func() string { return overTLS(authority, secure, "b.example") }).Should(Equal("200 "))
		Expect(overTLS(authority, e.securePort, "b.example")).To(Equal("404 "))
		Expect(more.ask("GET c.example / x-forwarded-port:80")).To(Equal("200 green"))

		By("the status of listeners and routes")
		Eventually(e.parent("wrong", "Accepted")).Should(Equal("False NoMatchingParent"))
		Eventually(e.attached).Should(Equal("http=1 https=0 second=1 a=0 secure=1 "))
		Eventually(e.condition("gateway", "web", "Programmed")).Should(HavePrefix("True Programmed"))
		Expect(e.listener("second", "Programmed")()).To(Equal("True Programmed"))

		By("a port that is added, and one that is removed, close no connection of others")
		ask := []func() (int, error){kept(e.port, "c.example"), kept(more.port, "c.example")}
		for _, one := range ask {
			Expect(one()).To(Equal(200))
		}
		listeners(second, fmt.Sprintf("{name: third, port: %d, protocol: HTTP}", third.port))
		route("third", "sectionName: third", "c.example", "red")
		third.expect("c.example", "200 red")
		Eventually(func() string { return overTLS(authority, secure, "b.example") }).Should(ContainSubstring("refused"))
		for _, one := range ask {
			Expect(one()).To(Equal(200))
		}
		listeners(second)
		Eventually(func() string { return third.request("c.example", "/") }).Should(ContainSubstring("refused"))
		for _, one := range ask {
			Expect(one()).To(Equal(200))
		}
		e.expect("c.example", "200 blue")
	})

	It("that are all routed alike have no conditions, and the one port that cannot be had says why", func() {
		e := newEdge(nil)
		e.service("blue", backend("blue"))
		more := e.at(freePort())
		e.listeners(fmt.Sprintf("  - {name: http, port: 80, protocol: HTTP}\n  - {name: second, port: %d, protocol: HTTP}\n"+
			"  - {name: own, port: %d, protocol: HTTP}\n  - {name: tcp, port: %d, protocol: TCP}", more.port, e.port, e.port+10_000))
		e.route(e.place, "all", "  hostnames: [a.example]\n  rules: [{backendRefs: [{name: blue, port: 80}]}]")
		e.expect("a.example", "200 blue")
		more.expect("a.example", "200 blue")
		Eventually(e.listener("own", "Accepted")).Should(Equal("False PortUnavailable"))
		Expect(e.listener("tcp", "Accepted")()).To(Equal("True Accepted"))
	})

	It("are not programmed while another program has the port of one", func() {
		e := newEdge(nil)
		e.service("blue", backend("blue"))
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(taken.Close)
		const usual = "  - {name: http, port: 80, protocol: HTTP}"
		e.listeners(usual)
		e.route(e.place, "all", "  hostnames: [a.example]\n  rules: [{backendRefs: [{name: blue, port: 80}]}]")
		e.expect("a.example", "200 blue")
		Eventually(e.condition("gateway", "web", "Programmed")).Should(HavePrefix("True Programmed"))
		e.listeners(fmt.Sprintf(usual+"\n  - {name: second, port: %d, protocol: HTTP}", taken.Addr().(*net.TCPAddr).Port))
		Eventually(e.condition("gateway", "web", "Programmed")).Should(MatchRegexp(`^False Invalid .*cannot bind`))
		Expect(e.listener("second", "Programmed")()).To(Equal("False Invalid"))
		e.expect("a.example", "200 blue")
		e.listeners(usual)
		Eventually(e.condition("gateway", "web", "Programmed")).Should(HavePrefix("True Programmed"))
	})
})
