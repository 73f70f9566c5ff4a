package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/websocket"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// rotations is how many certificates a spec adds, changes and removes:
// GATEHOUSE_TEST_CERTIFICATES, or a number that suits a run with the other tests.
func rotations() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_CERTIFICATES")); err == nil {
		return n
	}
	return 40
}

func (s secured) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.httpsPort)) }

// trusting returns the TLS configuration of a client that trusts the authority.
func (s secured) trusting() *tls.Config {
	return &tls.Config{RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12}
}

// secureTraffic sends requests over HTTPS until the end of the spec, most over
// keep-alive connections and one in ten over a new one. stop checks that all were
// answered.
func (s secured) secureTraffic(rate int, next func() testkit.Target) (stop func()) {
	options := testkit.TrafficOptions{Addr: s.addr(), TLS: s.trusting(), Rate: rate * 9 / 10, Next: next}
	kept := testkit.StartTraffic(options)
	options.Rate, options.Fresh, options.Connections = rate/10, true, 5
	fresh := testkit.StartTraffic(options)
	DeferCleanup(kept.Stop)
	DeferCleanup(fresh.Stop)
	return func() {
		GinkgoHelper()
		for what, t := range map[string]*testkit.Traffic{"kept connections": kept, "new connections": fresh} {
			report := t.Stop()
			AddReportEntry("traffic", what+": "+report.String())
			Expect(report.Failures).To(BeEmpty(), report.String())
			Expect(report.Requests).To(BeNumerically(">", 0))
		}
	}
}

// openOnes are an HTTP/2 connection with requests, and a websocket connection.
type openOnes struct {
	client *http.Client
	url    string
	dials  atomic.Int64
	socket *websocket.Conn
	sent   int
}

func (s secured) openOnes(host string) *openOnes {
	GinkgoHelper()
	o := &openOnes{url: "https://" + host + "/"}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: s.trusting()}
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		o.dials.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", s.addr())
	}
	o.client = &http.Client{Timeout: testkit.Patience, Transport: transport}
	DeferCleanup(transport.CloseIdleConnections)
	conn, err := s.handshake(host, func(c *tls.Config) { c.NextProtos = nil })
	Expect(err).NotTo(HaveOccurred())
	at := func(scheme string) *url.URL { return &url.URL{Scheme: scheme, Host: host, Path: "/"} }
	o.socket, err = websocket.NewClient(&websocket.Config{Location: at("wss"), Origin: at("https"), Version: websocket.ProtocolVersionHybi13}, conn)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(o.socket.Close)
	return o
}

// expectOpen sends a message over both, which must be the same connections as before.
func (o *openOnes) expectOpen() {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(limit(), http.MethodGet, o.url, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	resp, err := o.client.Do(req)
	Expect(err).NotTo(HaveOccurred())
	_, err = io.Copy(io.Discard, resp.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(resp.Body.Close()).To(Succeed())
	Expect(resp.StatusCode).To(Equal(http.StatusOK))
	Expect(resp.ProtoMajor).To(Equal(2))
	Expect(o.dials.Load()).To(BeEquivalentTo(1))
	Expect(o.socket.SetDeadline(time.Now().Add(testkit.Patience))).To(Succeed()) // each message has its own
	o.sent++
	message := fmt.Sprintf("message %d", o.sent)
	_, err = o.socket.Write([]byte(message))
	Expect(err).NotTo(HaveOccurred())
	back := make([]byte, len(message))
	_, err = io.ReadFull(o.socket, back)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(back)).To(Equal(message))
}

// expectShown opens a connection once, and checks the certificate.
func (s secured) expectShown(host string, pair testkit.Pair, change ...func(*tls.Config)) {
	GinkgoHelper()
	conn, err := s.handshake(host, change...)
	Expect(err).NotTo(HaveOccurred(), host)
	defer func() { _ = conn.Close() }()
	block, _ := pem.Decode([]byte(pair.Cert))
	shown := conn.ConnectionState().PeerCertificates[0]
	Expect(bytes.Equal(shown.Raw, block.Bytes)).To(BeTrue(), "%s is shown a certificate for %v", host, shown.DNSNames)
}

// expectRefused opens a connection once, which must be refused.
func (s secured) expectRefused(host string) {
	GinkgoHelper()
	_, err := s.handshake(host, without)
	Expect(err).To(MatchError(ContainSubstring("handshake failure")), host)
}

// rotate replaces a certificate with another.
func (s secured) rotate(secret string, o testkit.CertificateOptions) testkit.Pair {
	GinkgoHelper()
	pair, err := s.authority.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	form := url.Values{"Secret_cert": {pair.Cert}, "Secret_key": {pair.Key}}
	a, err := s.api.Do(limit(), http.MethodPatch, "/secret/"+secret+"?wait=applied", formType, form.Encode())
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	return pair
}

// listenerChanges returns the counters of an Envoy that increase with any change of a
// listener.
func listenerChanges(admin testkit.API) string {
	GinkgoHelper()
	stats := read(admin, "/stats?filter=^listener_manager[.]listener_(added|modified|removed|in_place_updated|create)")
	lines := regexp.MustCompile(`(?m)^listener_manager.*$`).FindAllString(stats, -1)
	Expect(len(lines)).To(BeNumerically(">=", 4), stats)
	return strings.Join(lines, "\n")
}

var _ = Describe("HTTPS under 500 requests per second", func() {
	It("uses a new certificate for the next connection, and loses no open one", func() {
		s, _ := secure("--access-log", "off")
		s.serve("shop", "shop.test", "shop.test")
		stop := s.secureTraffic(500, func() testkit.Target { return testkit.Target{Host: "shop.test", Path: "/"} })
		open := s.openOnes("shop.test")
		open.expectOpen()
		before := listenerChanges(adminOf(s.Gatehouse))
		for range rotations() {
			s.expectShown("shop.test", s.rotate("shop", testkit.CertificateOptions{Names: []string{"shop.test"}}))
			open.expectOpen()
		}
		stop()
		Expect(listenerChanges(adminOf(s.Gatehouse))).To(Equal(before))
	})

	It("answers nothing wrong while certificates are added, changed and removed", func() {
		s, _ := secure("--access-log", "off")
		s.serve("shop", "shop.test", "shop.test")
		addService(s.api, "wide", "*.wide.test", "blue")
		post(s.api, "/proxy/gw/service/wide")
		wide := s.issue("wide", testkit.CertificateOptions{Names: []string{"*.wide.test"}})
		applied(s.api, http.MethodPost, "/service/wide/secret/wide")
		addService(s.api, "exact", "one.wide.test", "blue")
		post(s.api, "/proxy/gw/service/exact")
		addService(s.api, "alone", "alone.test", "blue")
		post(s.api, "/proxy/gw/service/alone")
		hosts := []string{"shop.test", "one.wide.test", "any.wide.test"}
		var n atomic.Int64
		stop := s.secureTraffic(500, func() testkit.Target {
			return testkit.Target{Host: hosts[n.Add(1)/50%3], Path: "/"} // not a new connection for each
		})
		open := s.openOnes("one.wide.test")
		open.expectOpen()
		before := listenerChanges(adminOf(s.Gatehouse))
		for i := 0; i < rotations(); i += 4 {
			// One name has another certificate below, the other has none.
			for service, host := range map[string]string{"exact": "one.wide.test", "alone": "alone.test"} {
				secret := fmt.Sprintf("%s%d", service, i)
				options := testkit.CertificateOptions{Names: []string{host}}
				pair := s.issue(secret, options)
				applied(s.api, http.MethodPost, "/service/"+service+"/secret/"+secret)
				s.expectShown(host, pair)
				if i%8 == 0 {
					s.expectShown(host, s.rotate(secret, options))
				}
				applied(s.api, http.MethodDelete, "/service/"+service+"/secret/"+secret)
				if service == "exact" {
					s.expectShown(host, wide)
				} else {
					s.expectRefused(host)
				}
				remove(s.api, "/secret/"+secret)
			}
			open.expectOpen()
		}
		stop()
		Expect(listenerChanges(adminOf(s.Gatehouse))).To(Equal(before))
	})

	It("loses no plain HTTP request while the first certificate is added and the last one removed", func() {
		s, _ := secure("--access-log", "off")
		s.serve("shop", "shop.test")
		s.expect("shop.test", "/", "blue")
		pair := s.issue("shop", testkit.CertificateOptions{Names: []string{"shop.test"}})
		_, stop := s.traffic("shop.test", 500)
		for range rotations() / 4 {
			applied(s.api, http.MethodPost, "/service/shop/secret/shop")
			s.expectShown("shop.test", pair)
			applied(s.api, http.MethodDelete, "/service/shop/secret/shop")
			_, err := s.handshake("shop.test", without)
			Expect(err).To(HaveOccurred())
		}
		stop()
		Expect(listenerChanges(adminOf(s.Gatehouse))).To(ContainSubstring("listener_modified: 0"))
	})

	It("keeps the connections of other hosts while some need chains of their own", func() {
		s, _ := secure("--access-log", "off")
		s.serve("shop", "shop.test", "shop.test")
		s.serve("bank", "bank.test", "bank.test")
		s.serve("both", "both.test", "both.test")
		s.issue("both-rsa", testkit.CertificateOptions{Names: []string{"both.test"}, RSA: true})
		post(s.api, "/secret", "Secret_name=clients", "Secret_cert="+s.authority.PEM)
		stop := s.secureTraffic(500, func() testkit.Target { return testkit.Target{Host: "shop.test", Path: "/"} })
		open := s.openOnes("shop.test")
		open.expectOpen()
		for range rotations() / 8 {
			for _, ca := range []string{"clients", ""} {
				a, err := s.api.Do(limit(), http.MethodPatch, "/service/bank?wait=applied", "application/json", `{"client_validation_cacertificate":"`+ca+`"}`)
				Expect(err).NotTo(HaveOccurred())
				Expect(a.Status).To(Equal(http.StatusOK), a.Body)
				open.expectOpen()
			}
			for _, method := range []string{http.MethodPost, http.MethodDelete} {
				applied(s.api, method, "/service/both/secret/both-rsa")
				open.expectOpen()
			}
		}
		stop()
		changes := listenerChanges(adminOf(s.Gatehouse))
		AddReportEntry("listener", changes)
		Expect(changes).To(ContainSubstring(fmt.Sprintf("listener_in_place_updated: %d", rotations()/8*4)))
	})
})
