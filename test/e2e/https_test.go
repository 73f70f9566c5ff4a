package e2e_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// secured is a gateway with HTTPS, and the authority of its certificates.
type secured struct {
	gateway
	*testkit.Gatehouse
	httpsPort int
	authority *testkit.Authority
}

// secure runs a gateway with a backend and no service.
func secure(args ...string) (secured, *testkit.Backend) {
	GinkgoHelper()
	port, https := freePort(), freePort()
	g := start(nil, append([]string{
		"standalone", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0",
		"--admin-addr", "127.0.0.1:0", "--http-port", strconv.Itoa(port), "--https-port", strconv.Itoa(https),
	}, args...)...)
	authority, err := testkit.NewAuthority("test")
	Expect(err).NotTo(HaveOccurred())
	blue := backend("blue")
	addUpstream(g.API, blue)
	post(g.API, "/proxy", "Name=gw")
	return secured{gateway{g.API, port}, g, https, authority}, blue
}

// issue makes a certificate for names and stores it.
func (s secured) issue(secret string, o testkit.CertificateOptions) testkit.Pair {
	GinkgoHelper()
	pair, err := s.authority.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	post(s.api, "/secret", "Secret_name="+secret, "Secret_cert="+pair.Cert, "Secret_key="+pair.Key)
	return pair
}

// serve makes a service for a host in front of blue, with a certificate for names.
func (s secured) serve(name, fqdn string, names ...string) {
	GinkgoHelper()
	addService(s.api, name, fqdn, "blue")
	post(s.api, "/proxy/gw/service/"+name)
	if len(names) > 0 {
		s.issue(name, testkit.CertificateOptions{Names: names})
		applied(s.api, http.MethodPost, "/service/"+name+"/secret/"+name)
	}
}

// handshake connects as a client with a server name.
func (s secured) handshake(sni string, change ...func(*tls.Config)) (*tls.Conn, error) {
	config := &tls.Config{ServerName: sni, RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	for _, c := range change {
		c(config)
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(limit(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.httpsPort)))
	if err != nil {
		return nil, err
	}
	return testkit.Bounded(conn.(*tls.Conn), nil)
}

// ask sends a request for a host over a connection for a name, and closes it.
func (s secured) ask(sni, host string, change ...func(*tls.Config)) (status int, body string, header http.Header) {
	GinkgoHelper()
	conn, err := s.handshake(sni, append([]func(*tls.Config){func(c *tls.Config) { c.NextProtos = nil }}, change...)...)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
	Expect(err).NotTo(HaveOccurred())
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = resp.Body.Close() }()
	read, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return resp.StatusCode, string(read), resp.Header
}

var _ = Describe("HTTPS", func() {
	It("serves a service that has a certificate, and no name without one", func() {
		s, _ := secure()
		s.serve("shop", "shop.test", "shop.test")
		status, body, _ := s.ask("shop.test", "shop.test")
		Expect(status).To(Equal(200), body)
		conn, err := s.handshake("shop.test")
		Expect(err).NotTo(HaveOccurred())
		Expect(conn.ConnectionState().NegotiatedProtocol).To(Equal("h2"))
		Expect(conn.ConnectionState().Version).To(Equal(uint16(tls.VersionTLS13)))
		Expect(conn.Close()).To(Succeed())
		By("in upper case too")
		status, _, _ = s.ask("SHOP.Test", "Shop.TEST:8443", func(c *tls.Config) { c.InsecureSkipVerify = true })
		Expect(status).To(Equal(200))
		for _, name := range []string{"other.test", "x.shop.test", "test", ""} {
			_, err := s.handshake(name, func(c *tls.Config) { c.InsecureSkipVerify = true })
			Expect(err).To(MatchError(ContainSubstring("handshake failure")), name)
		}
		By("and closes what is not TLS")
		_, err = testkit.API{URL: "http://127.0.0.1:" + strconv.Itoa(s.httpsPort)}.Get(limit(), "/")
		Expect(err).To(HaveOccurred())
	})

	It("presents the certificate of the service with the most exact host", func() {
		s, _ := secure()
		s.serve("all", "*", "*.test", "other.example")
		s.serve("wide", "*.shop.test", "*.shop.test")
		s.serve("one", "a.shop.test", "a.shop.test", "b.shop.test")
		for name, secret := range map[string][]string{
			"a.shop.test": {"a.shop.test", "b.shop.test"}, "b.shop.test": {"*.shop.test"}, "shop.test": {"*.test", "other.example"},
			"other.example": {"*.test", "other.example"},
		} {
			conn, err := s.handshake(name)
			Expect(err).NotTo(HaveOccurred(), name)
			Expect(conn.ConnectionState().PeerCertificates[0].DNSNames).To(Equal(secret), name)
			Expect(conn.Close()).To(Succeed())
			status, _, _ := s.ask(name, name)
			Expect(status).To(Equal(200), name)
		}
		By("and the one for every host to a client that sends no server name")
		conn, err := s.handshake("", func(c *tls.Config) { c.InsecureSkipVerify = true })
		Expect(err).NotTo(HaveOccurred())
		Expect(conn.ConnectionState().PeerCertificates[0].DNSNames).To(Equal([]string{"*.test", "other.example"}))
		Expect(conn.Close()).To(Succeed())
	})

	It("answers 421 to a request for a host that the connection was not made for", func() {
		s, blue := secure()
		s.serve("shop", "shop.test", "*.test", "shop.test")
		s.serve("other", "other.test", "other.test")
		before := blue.Requests()
		for _, host := range []string{"other.test", "other.test:443", "OTHER.test", "shop.test.other.test", "x.test", "127.0.0.1", "[::1]"} {
			status, body, _ := s.ask("shop.test", host)
			Expect(status).To(Equal(421), "%s: %s", host, body)
			Expect(body).To(Equal("this connection was made for another host; open one for this host\n"))
		}
		Expect(blue.Requests()).To(Equal(before))
		status, _, _ := s.ask("shop.test", "shop.test.:8443")
		Expect(status).To(Equal(200))
	})

	It("requests a client's certificate, and lets nobody reach the service without one", func() {
		s, blue := secure()
		s.serve("bank", "bank.test", "bank.test")
		s.serve("shop", "shop.test", "*.test", "shop.test")
		post(s.api, "/secret", "Secret_name=clients", "Secret_cert="+s.authority.PEM)
		patch := func(fields string) {
			GinkgoHelper()
			a, err := s.api.Do(limit(), http.MethodPatch, "/service/bank?wait=applied", "application/json", fields)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(200), a.Body)
		}
		patch(`{"client_validation_cacertificate":"clients"}`)
		other, err := testkit.NewAuthority("other")
		Expect(err).NotTo(HaveOccurred())
		showing := func(a *testkit.Authority, o testkit.CertificateOptions) func(*tls.Config) {
			pair, err := a.Issue(o)
			Expect(err).NotTo(HaveOccurred())
			certificate, err := pair.TLS()
			Expect(err).NotTo(HaveOccurred())
			return func(c *tls.Config) {
				c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
			}
		}
		good := showing(s.authority, testkit.CertificateOptions{Client: true, Subject: "anna", Names: []string{"anna.test"}})
		conn, err := s.handshake("bank.test", good, func(c *tls.Config) { c.NextProtos = nil })
		Expect(err).NotTo(HaveOccurred())
		_, err = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: bank.test\r\nX-Forwarded-Client-Cert: Subject=\"CN=root\"\r\nConnection: close\r\n\r\n")
		Expect(err).NotTo(HaveOccurred())
		answer, err := io.ReadAll(conn)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(answer)).To(HavePrefix("HTTP/1.1 200"))
		Expect(string(answer)).To(ContainSubstring(`Subject=\"CN=anna\"`))
		Expect(string(answer)).To(ContainSubstring(`DNS=anna.test`))
		Expect(string(answer)).NotTo(ContainSubstring("CN=root"))

		wide, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"*.test"}})
		Expect(err).NotTo(HaveOccurred())
		before := blue.Requests()
		By("over a connection with none, or a wrong one")
		for what, change := range map[string]func(*tls.Config){
			"none": func(*tls.Config) {}, "another authority": showing(other, testkit.CertificateOptions{Client: true}),
			"for servers": showing(s.authority, testkit.CertificateOptions{Names: []string{"bank.test"}}),
		} {
			conn, err := s.handshake("bank.test", change, func(c *tls.Config) { c.NextProtos = nil })
			if err == nil { // in TLS 1.3 the client learns of it later
				_, err = io.ReadAll(conn)
				_ = conn.Close()
			}
			Expect(err).To(HaveOccurred(), what)
		}
		By("over a connection that was made for another host")
		status, _, _ := s.ask("shop.test", "bank.test", good)
		Expect(status).To(Equal(421))
		By("over a connection from before it required one")
		patch(`{"client_validation_cacertificate":""}`)
		early, err := s.handshake("bank.test", func(c *tls.Config) { c.NextProtos = nil })
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = early.Close() }()
		patch(`{"client_validation_cacertificate":"clients"}`)
		_, err = fmt.Fprint(early, "GET / HTTP/1.1\r\nHost: bank.test\r\nConnection: close\r\n\r\n")
		Expect(err).NotTo(HaveOccurred())
		late, err := io.ReadAll(early)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(late)).To(HavePrefix("HTTP/1.1 403"))
		By("over a connection whose client was verified by other authorities")
		post(s.api, "/secret", "Secret_name=others", "Secret_cert="+other.PEM)
		patch(`{"client_validation_cacertificate":"others"}`)
		foreign, err := s.handshake("bank.test", showing(other, testkit.CertificateOptions{Client: true}), func(c *tls.Config) { c.NextProtos = nil })
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = foreign.Close() }()
		patch(`{"client_validation_cacertificate":"clients"}`)
		_, err = fmt.Fprint(foreign, "GET / HTTP/1.1\r\nHost: bank.test\r\nConnection: close\r\n\r\n")
		Expect(err).NotTo(HaveOccurred())
		late, err = io.ReadAll(foreign)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(late)).To(HavePrefix("HTTP/1.1 403"))
		By("with the certificate of another service for its name")
		remove(s.api, "/service/bank/secret/bank?wait=applied")
		post(s.api, "/secret", "Secret_name=wide", "Secret_cert="+wide.Cert, "Secret_key="+wide.Key)
		addService(s.api, "wide", "*.test", "blue")
		post(s.api, "/proxy/gw/service/wide")
		applied(s.api, http.MethodPost, "/service/wide/secret/wide")
		status, _, _ = s.ask("x.test", "x.test")
		Expect(status).To(Equal(200))
		before++
		conn, err = s.handshake("bank.test", func(c *tls.Config) { c.NextProtos = nil })
		if err == nil {
			_, err = io.ReadAll(conn)
		}
		Expect(err).To(HaveOccurred())
		By("over plain HTTP")
		a := s.get("bank.test", "/")
		Expect(a.Status).To(Equal(403))
		Expect(a.Body).To(Equal("this host requires a client certificate: connect to it over https\n"))
		Expect(blue.Requests()).To(Equal(before))
		By("which may send clients to HTTPS")
		patch(`{"https":"redirect"}`)
		Expect(s.get("bank.test", "/").Status).To(Equal(301))
	})

	It("redirects plain HTTP to HTTPS, or refuses it", func() {
		s, blue := secure()
		s.serve("shop", "shop.test", "shop.test")
		patch := func(fields string) {
			GinkgoHelper()
			a, err := s.api.Do(limit(), http.MethodPatch, "/service/shop?wait=applied", "application/json", fields)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(200), a.Body)
		}
		client := &http.Client{Timeout: testkit.Patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		ask := func(method, host string) (int, http.Header) {
			GinkgoHelper()
			req, err := http.NewRequestWithContext(limit(), method, fmt.Sprintf("http://127.0.0.1:%d/cart?a=b", s.port), strings.NewReader("body"))
			Expect(err).NotTo(HaveOccurred())
			req.Host = host
			resp, err := client.Do(req)
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Body.Close()).To(Succeed())
			return resp.StatusCode, resp.Header
		}
		s.expect("shop.test", "/", "blue")
		patch(`{"https":"redirect","hsts_seconds":600,"hsts_subdomains":true}`)
		before := blue.Requests()
		for _, c := range []struct {
			method, host, location string
			status                 int
		}{
			{"GET", "shop.test", "https://shop.test/cart?a=b", 301},
			{"HEAD", "shop.test", "https://shop.test/cart?a=b", 301},
			{"POST", "shop.test", "https://shop.test/cart?a=b", 308},
			{"GET", "shop.test:" + strconv.Itoa(s.port), "https://shop.test:" + strconv.Itoa(s.httpsPort) + "/cart?a=b", 301},
			{"DELETE", "shop.test:" + strconv.Itoa(s.port), "https://shop.test:" + strconv.Itoa(s.httpsPort) + "/cart?a=b", 308},
		} {
			status, header := ask(c.method, c.host)
			Expect(status).To(Equal(c.status), "%s %s", c.method, c.host)
			Expect(header.Get("Location")).To(Equal(c.location))
			Expect(header).NotTo(HaveKey("Strict-Transport-Security"))
		}
		status, _, header := s.ask("shop.test", "shop.test")
		Expect(status).To(Equal(200))
		Expect(header.Values("Strict-Transport-Security")).To(Equal([]string{"max-age=600; includeSubDomains"}))
		patch(`{"https":"only"}`)
		status, _ = ask("GET", "shop.test")
		Expect(status).To(Equal(403))
		Expect(blue.Requests()).To(Equal(before + 1))
	})

	It("presents the ECDSA one of two certificates to a client that supports it, however long they are valid", func() {
		// Clients that cannot are in test/clients: Go cannot be one.
		s, _ := secure()
		s.serve("shop", "shop.test", "shop.test")
		s.issue("shop-rsa", testkit.CertificateOptions{Names: []string{"shop.test"}, RSA: true, NotAfter: time.Now().Add(24 * time.Hour)})
		for _, algorithm := range []x509.PublicKeyAlgorithm{x509.ECDSA, x509.RSA} {
			applied(s.api, http.MethodPost, "/service/shop/secret/shop-rsa")
			if algorithm == x509.RSA {
				remove(s.api, "/service/shop/secret/shop?wait=applied")
			}
			conn, err := s.handshake("shop.test")
			Expect(err).NotTo(HaveOccurred())
			Expect(conn.ConnectionState().PeerCertificates[0].PublicKeyAlgorithm).To(Equal(algorithm))
			Expect(conn.Close()).To(Succeed())
			status, _, _ := s.ask("shop.test", "shop.test")
			Expect(status).To(Equal(200))
		}
	})
})
