package e2e_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A service of mode tcp", func() {
	It("passes connections on to its upstreams, without losing one when others change", func() {
		_, gw := standalone()
		post(gw.api, "/proxy", "Name=gw")
		red, green := talk("red", nil), talk("green", nil)
		addTalker(gw.api, red)
		addTalker(gw.api, green)
		port, second := freePort(), freePort()
		addL4(gw.api, "db", "tcp", port, "*", "red")
		Expect(who(port, nil)).To(Equal("red"))

		people := gather(func() (*talking, string, error) { return hear(port, nil) })
		addL4(gw.api, "cache", "tcp", second, "*", "green")
		Expect(who(second, nil)).To(Equal("green"))
		applied(gw.api, http.MethodPost, "/service/db/route/root/upstream/green")
		applied(gw.api, http.MethodDelete, "/service/db/route/root/upstream/red")
		Expect(who(port, nil)).To(Equal("green"))
		applied(gw.api, http.MethodPost, "/service/db/route/root/upstream/red")
		applied(gw.api, http.MethodDelete, "/proxy/gw/service/cache")
		Eventually(func() string { return who(second, nil) }).Should(ContainSubstring("refused"))
		people.expectNone()
	})
})

var _ = Describe("A service of mode tls", func() {
	// passing runs a gateway with an HTTPS service, and returns it with clients of names.
	passing := func() (s secured, client func(name string) *tls.Config, blue *testkit.Backend) {
		GinkgoHelper()
		s, blue = secure()
		return s, func(name string) *tls.Config {
			return &tls.Config{ServerName: name, RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12}
		}, blue
	}
	own := func(s secured, names ...string) *tls.Config {
		GinkgoHelper()
		pair, err := s.authority.Issue(testkit.CertificateOptions{Names: names})
		Expect(err).NotTo(HaveOccurred())
		cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
		Expect(err).NotTo(HaveOccurred())
		return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	}

	It("passes TLS on by name, alone on the HTTPS port and beside HTTPS, without touching other connections", func() {
		s, client, _ := passing()
		red, green := talk("red", own(s, "red.test")), talk("green", own(s, "a.wild.test", "deep.shop.wild.test"))
		addTalker(s.api, red)
		addTalker(s.api, green)
		addL4(s.api, "red", "tls", 0, "Red.test", "red") // no service has a certificate: the listener is there all the same
		Expect(who(s.httpsPort, client("red.test"))).To(Equal("red"))
		people := gather(func() (*talking, string, error) { return hear(s.httpsPort, client("red.test")) })

		s.serve("shop", "shop.test", "shop.test")
		status, _, _ := s.ask("shop.test", "shop.test")
		Expect(status).To(Equal(http.StatusOK))
		kept, err := s.handshake("shop.test", func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = kept.Close() }()
		lines := bufio.NewReader(kept)
		again := func() string {
			_, err := io.WriteString(kept, "GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n")
			if err != nil {
				return err.Error()
			}
			res, err := http.ReadResponse(lines, nil)
			if err != nil {
				return err.Error()
			}
			_, _ = io.Copy(io.Discard, res.Body)
			return res.Status + " " + res.Header.Get("Connection")
		}
		Expect(again()).To(Equal("200 OK "))

		addL4(s.api, "green", "tls", 0, "*.wild.test", "green")
		Expect(who(s.httpsPort, client("a.wild.test"))).To(Equal("green"))
		s.serve("below", "www.shop.wild.test", "www.shop.wild.test")
		status, _, _ = s.ask("www.shop.wild.test", "www.shop.wild.test") // the exact name, below the wildcard of another service
		Expect(status).To(Equal(http.StatusOK))
		Expect(who(s.httpsPort, client("deep.shop.wild.test"))).To(Equal("green"))
		applied(s.api, http.MethodDelete, "/proxy/gw/service/green")
		Expect(who(s.httpsPort, client("a.wild.test"))).To(ContainSubstring("tls: "))
		Expect(again()).To(Equal("200 OK "), "the connection of another service is as it was")
		stats := read(adminOf(s.Gatehouse), "/stats?filter=^listener_manager")
		Expect(stats).To(ContainSubstring("listener_manager.total_listeners_draining: 0\n"))
		Expect(stats).To(ContainSubstring("listener_manager.total_filter_chains_draining: 1\n"), "that of the service that went")
		for _, name := range []string{"listener_in_place_updated", "listener_modified"} {
			Expect(stats).To(ContainSubstring("listener_manager."+name+": 4\n"), "each change was in place, as that to the first certificate")
		}
		people.expectNone()
	})

	It("has a port of its own, where unknown names and connections without TLS are closed", func() {
		s, client, _ := passing()
		port := freePort()
		addTalker(s.api, talk("red", own(s, "red.test")))
		addTalker(s.api, talk("green", own(s, "green.test")))
		addL4(s.api, "red", "tls", port, "red.test", "red")
		people := gather(func() (*talking, string, error) { return hear(port, client("red.test")) })
		addL4(s.api, "green", "tls", port, "green.test", "green")
		Expect(who(port, client("red.test"))).To(Equal("red"))
		Expect(who(port, client("green.test"))).To(Equal("green"))
		Expect(who(port, client("blue.test"))).To(Or(ContainSubstring("EOF"), ContainSubstring("reset")))
		plain, err := testkit.Bounded(testkit.Dialer().Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))))
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = plain.Close() }()
		_, err = io.WriteString(plain, "GET / HTTP/1.1\r\nHost: red.test\r\n\r\n")
		Expect(err).NotTo(HaveOccurred())
		got, _ := io.ReadAll(plain)
		Expect(got).To(BeEmpty())
		Expect(who(s.httpsPort, client("red.test"))).To(ContainSubstring("refused"))
		applied(s.api, http.MethodDelete, "/proxy/gw/service/green")
		people.expectNone()
	})
})

var _ = Describe("A service of mode tcp with a certificate", func() {
	It("decrypts connections, also while the certificate changes, and encrypts them for its upstream", func() {
		s, _ := secure()
		port := freePort()
		inner, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"inner.test"}})
		Expect(err).NotTo(HaveOccurred())
		cert, err := tls.X509KeyPair([]byte(inner.Cert), []byte(inner.Key))
		Expect(err).NotTo(HaveOccurred())
		post(s.api, "/secret", "Secret_name=ca", "Secret_cert="+s.authority.PEM)
		addTalker(s.api, talk("red", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}),
			"Upstream_protocol=tls", "Upstream_validation_cacertificate=ca", "Upstream_validation_subjectname=inner.test")
		s.issue("db", testkit.CertificateOptions{Names: []string{"db.test"}})
		post(s.api, "/service", "Service_Name=db", "Mode=tcp", "Port="+strconv.Itoa(port), "fqdn=*")
		addRoute(s.api, "db", "root", "/", "", "red")
		post(s.api, "/service/db/secret/db")
		applied(s.api, http.MethodPost, "/proxy/gw/service/db")
		client := &tls.Config{ServerName: "db.test", RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12}
		Expect(who(port, client)).To(Equal("red"))
		people := gather(func() (*talking, string, error) { return hear(port, client) })
		pair, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"db.test", "new.test"}})
		Expect(err).NotTo(HaveOccurred())
		a, err := s.api.Do(limit(), http.MethodPut, "/secret/db?wait=applied", "application/json",
			`{"secret_cert": `+strconv.Quote(pair.Cert)+`, "secret_key": `+strconv.Quote(pair.Key)+`}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		renewed := client.Clone()
		renewed.ServerName = "new.test"
		Eventually(func() string { return who(port, renewed) }).Should(Equal("red"))
		people.expectNone()
	})
})

var _ = Describe("A service of mode tcp that verifies clients", func() {
	It("lets in those with a certificate of its authority, and its backend hears of nobody else", func() {
		s, _ := secure()
		port := freePort()
		red := talk("red", nil)
		addTalker(s.api, red)
		post(s.api, "/secret", "Secret_name=clients", "Secret_cert="+s.authority.PEM)
		s.issue("db", testkit.CertificateOptions{Names: []string{"db.test"}})
		post(s.api, "/service", "Service_Name=db", "Mode=tcp", "Port="+strconv.Itoa(port), "fqdn=*", "Client_validation_cacertificate=clients")
		addRoute(s.api, "db", "root", "/", "", "red")
		applied(s.api, http.MethodPost, "/proxy/gw/service/db")
		with := func(authority *testkit.Authority) *tls.Config {
			GinkgoHelper()
			client := &tls.Config{ServerName: "db.test", RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12}
			if authority != nil {
				pair, err := authority.Issue(testkit.CertificateOptions{Client: true, Subject: "ann"})
				Expect(err).NotTo(HaveOccurred())
				cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
				Expect(err).NotTo(HaveOccurred())
				client.Certificates = []tls.Certificate{cert}
			}
			return client
		}
		stranger, err := testkit.NewAuthority("stranger")
		Expect(err).NotTo(HaveOccurred())
		By("nobody, until it has a certificate itself")
		Expect(who(port, with(s.authority))).NotTo(Equal("red"))
		Expect(read(s.api, "/service/db")).To(ContainSubstring("requests client certificates and has no certificate itself"))
		post(s.api, "/service/db/secret/db?wait=applied")
		Eventually(func() string { return who(port, with(s.authority)) }).Should(Equal("red"))
		h, _, err := hear(port, with(s.authority))
		Expect(err).NotTo(HaveOccurred())
		Expect(h.repeats("hello")).To(Succeed())
		Expect(h.Close()).To(Succeed())
		seen := red.accepted.Load()
		for _, client := range []*tls.Config{nil, with(nil), with(stranger)} {
			Expect(who(port, client)).NotTo(Equal("red"))
		}
		Expect(red.accepted.Load()).To(Equal(seen))
	})
})

var _ = Describe("A service of mode udp", func() {
	It("passes datagrams on, without losing one when another service changes", func() {
		_, gw := standalone()
		post(gw.api, "/proxy", "Name=gw")
		red := echoDatagrams("red ")
		addTalker(gw.api, red)
		port := freeDatagramPort()
		addL4(gw.api, "dns", "udp", port, "*", "red")
		one := datagrams(port)
		Expect(one.ask(strings.Repeat("x", 4000))).To(Equal("red " + strings.Repeat("x", 4000)))
		other := freeDatagramPort()
		done := make(chan struct{})
		var failed []string
		var wg sync.WaitGroup
		var sent atomic.Int64
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				text := fmt.Sprint("query ", sent.Load())
				if back := one.ask(text); back != "red "+text {
					failed = append(failed, back)
				}
				sent.Add(1)
			}
		})
		addL4(gw.api, "more", "udp", other, "*", "red")
		applied(gw.api, http.MethodPut, "/service/more", "fqdn=*", "Mode=udp", "Port="+strconv.Itoa(freeDatagramPort()))
		applied(gw.api, http.MethodDelete, "/proxy/gw/service/more")
		Eventually(sent.Load).Should(BeNumerically(">", 20))
		close(done)
		wg.Wait()
		Expect(failed).To(BeEmpty())
		Expect(datagrams(other).ask("nobody")).To(ContainSubstring("refused"))
	})
})
