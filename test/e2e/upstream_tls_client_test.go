package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("An upstream that requires a client certificate", Ordered, func() {
	var l tlsLab
	BeforeAll(func() {
		l = newTLSLab()
		for name, a := range map[string]*testkit.Authority{"right": l.ca, "wrong": l.other} {
			pair, err := a.Issue(testkit.CertificateOptions{Subject: "gateway", Names: []string{"gateway.test"}, Client: true})
			Expect(err).NotTo(HaveOccurred())
			post(l.api, "/secret", "Secret_name="+name, "Secret_cert="+pair.Cert, "Secret_key="+pair.Key)
		}
	})
	// asking runs a backend that only accepts clients of the authority.
	asking := func(name string, version uint16) *testkit.Backend {
		GinkgoHelper()
		return serving(name, "tls", issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1"}}), func(c *tls.Config) {
			c.ClientAuth, c.ClientCAs, c.MaxVersion = tls.RequireAndVerifyClientCert, l.ca.Pool(), version
		})
	}

	DescribeTable("is reached only with the right one", func(name string, version uint16) {
		b := asking(name, version)
		l.reach(name, "127.0.0.1", b.Port)
		l.expectBad(name, "client_certificate", "it requests a client certificate, and none is presented: name a secret with a pair in Upstream_client_certificate")
		By("the wrong one")
		other := name + "wrong"
		l.reach(other, "127.0.0.1", b.Port, "Upstream_client_certificate=wrong")
		l.expectBad(other, "client_certificate", `it requests a client certificate, and probably does not accept that of secret "wrong"`)
		Expect(b.Requests()).To(BeZero())
		By("the right one")
		applied(l.api, http.MethodPatch, "/upstream/"+name, "Upstream_client_certificate=right")
		l.expect(name+".example", "/", name)
		Eventually(saidOf).WithArguments(l.api, name+".example").Should(HavePrefix("answering: "))
	},
		Entry("with TLS 1.2", "mutual12", uint16(tls.VersionTLS12)),
		Entry("with TLS 1.3", "mutual13", uint16(tls.VersionTLS13)),
	)

	It("passes health checks with it", func() {
		b := asking("checked", tls.VersionTLS13)
		check := []string{"Upstream_hc_path=" + testkit.HealthPath, "Upstream_hc_intervalseconds=1"}
		host := l.reach("checked", "127.0.0.1", b.Port, append(check, "Upstream_client_certificate=right")...)
		Eventually(saidOf).WithArguments(l.api, host).Should(HavePrefix("healthy: "))
	})

	It("has no private key in a cluster, nor in what the API shows of Envoy's resources", func() {
		text := read(l.api, "/proxy/gw/xds")
		Expect(text).To(And(ContainSubstring(`"pair/right"`), ContainSubstring(`"system/authorities"`), Not(ContainSubstring("PRIVATE KEY"))))
	})
})

var _ = Describe("The authority and the client certificate of an upstream", func() {
	It("are replaced without a lost request, or a change of a cluster", func() {
		l := newTLSLab()
		next, err := testkit.NewAuthority("next")
		Expect(err).NotTo(HaveOccurred())
		both := l.ca.PEM + next.PEM
		clients := x509.NewCertPool()
		clients.AppendCertsFromPEM([]byte(both))
		var shown atomic.Pointer[tls.Certificate]
		old := issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1"}})
		shown.Store(&old)
		var seen atomic.Pointer[string] // the client of the last new connection
		b := serving("blue", "tls", old, func(c *tls.Config) {
			c.Certificates = []tls.Certificate{old}
			c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, clients
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				now := c.Clone()
				now.GetConfigForClient, now.NextProtos = nil, []string{"http/1.1"}
				now.Certificates = []tls.Certificate{*shown.Load()}
				now.VerifyConnection = func(s tls.ConnectionState) error {
					seen.Store(&s.PeerCertificates[0].Subject.CommonName)
					return nil
				}
				return now, nil
			}
		})
		client := func(a *testkit.Authority, name string) testkit.Pair {
			pair, err := a.Issue(testkit.CertificateOptions{Subject: name, Names: []string{"gateway.test"}, Client: true})
			Expect(err).NotTo(HaveOccurred())
			return pair
		}
		first, second := client(l.ca, "first"), client(next, "second")
		post(l.api, "/secret", "Secret_name=pair", "Secret_cert="+first.Cert, "Secret_key="+first.Key)
		host := l.reach("blue", "127.0.0.1", b.Port, "Upstream_validation_cacertificate=ca", "Upstream_client_certificate=pair")
		l.expect(host, "/", "blue")
		version := clusterVersion(l.api)

		stop, failed, sent := make(chan struct{}), make(chan string, 1), make(chan int, 1)
		go l.keepAsking(host, stop, failed, sent)
		end := sync.OnceFunc(func() { close(stop) })
		DeferCleanup(end)
		many := 1
		for range 3 {
			By("another authority in time, then another certificate, and back")
			for _, step := range []struct {
				authorities string
				shows       tls.Certificate
				pair        testkit.Pair
				name        string
			}{{both, issued(next, testkit.CertificateOptions{Names: []string{"127.0.0.1"}}), second, "second"}, {both, old, first, "first"}} {
				applied(l.api, http.MethodPost, "/secret/ca/cert", "Secret_cert="+formText(step.authorities))
				shown.Store(&step.shows)
				applied(l.api, http.MethodPost, "/secret/pair/key", "Secret_cert="+formText(step.pair.Cert), "Secret_key="+formText(step.pair.Key))
				// More concurrent requests than ever before need a new connection.
				Eventually(func() string {
					many++
					l.burst(host, many)
					return *seen.Load()
				}).Should(Equal(step.name))
			}
		}
		end()
		Expect(<-sent).To(BeNumerically(">", 20))
		Expect(failed).NotTo(Receive())
		Expect(clusterVersion(l.api)).To(Equal(version), "the cluster is as it was")
	})
})

// formText returns a text as it is in a form.
func formText(s string) string {
	return strings.NewReplacer("+", "%2B", "/", "%2F", "=", "%3D", "\n", "%0A", " ", "%20").Replace(s)
}

// clusterVersion returns the version of the only cluster of an upstream.
func clusterVersion(api testkit.API) string {
	GinkgoHelper()
	return read(api, "/proxy/gw/xds?type=cluster")
}

// burst sends many requests at the same time, and waits for the answers.
func (l tlsLab) burst(host string, many int) {
	GinkgoHelper()
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			defer GinkgoRecover()
			Expect(l.get(host, "/?delay=300ms").Status).To(Equal(http.StatusOK))
		})
	}
	group.Wait()
}

// keepAsking sends one request after the other until it is stopped.
func (l tlsLab) keepAsking(host string, stop <-chan struct{}, failed chan<- string, sent chan<- int) {
	client := &http.Client{Timeout: testkit.Patience}
	for n := 0; ; n++ {
		select {
		case <-stop:
			sent <- n
			return
		default:
		}
		req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+strconv.Itoa(l.port)+"/", http.NoBody) //nolint:noctx // ends with the gateway
		if err == nil {
			req.Host = host
			var resp *http.Response
			if resp, err = client.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					err = fmt.Errorf("status %d", resp.StatusCode)
				}
			}
		}
		if err != nil {
			select {
			case failed <- err.Error():
			default:
			}
		}
	}
}
