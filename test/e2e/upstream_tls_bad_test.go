package e2e_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// tlsLab is a gateway and the authority of its backends' certificates. The authority is
// stored as the secret "ca", and is also the system's.
type tlsLab struct {
	gateway
	ca, other *testkit.Authority
}

func newTLSLab(args ...string) tlsLab {
	GinkgoHelper()
	var l tlsLab
	for name, a := range map[string]**testkit.Authority{"ca": &l.ca, "other": &l.other} {
		made, err := testkit.NewAuthority(name)
		Expect(err).NotTo(HaveOccurred())
		*a = made
	}
	file := filepath.Join(GinkgoT().TempDir(), "ca.pem")
	Expect(os.WriteFile(file, []byte(l.ca.PEM), 0o600)).To(Succeed())
	_, l.gateway = standalone(append([]string{"--access-log", "off", "--upstream-ca-file", file}, args...)...)
	post(l.api, "/secret", "Secret_name=ca", "Secret_cert="+l.ca.PEM)
	post(l.api, "/secret", "Secret_name=other", "Secret_cert="+l.other.PEM)
	post(l.api, "/proxy", "Name=gw")
	return l
}

// issued returns a certificate in the form of Go's TLS.
func issued(a *testkit.Authority, o testkit.CertificateOptions) tls.Certificate {
	GinkgoHelper()
	pair, err := a.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	cert, err := pair.TLS()
	Expect(err).NotTo(HaveOccurred())
	return cert
}

// serving runs a backend with a certificate; change changes its TLS configuration.
func serving(name, protocol string, cert tls.Certificate, change ...func(*tls.Config)) *testkit.Backend {
	GinkgoHelper()
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	for _, c := range change {
		c(config)
	}
	return backendWith(name, testkit.BackendOptions{Protocol: protocol, TLS: config})
}

// reach creates a service in front of an upstream at an address.
func (l tlsLab) reach(name, address string, port int, fields ...string) (host string) {
	GinkgoHelper()
	if !slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "Upstream_protocol=") }) {
		fields = append(fields, "Upstream_protocol=tls")
	}
	post(l.api, "/upstream", append(fields, "Upstream_name="+name, "Upstream_ip="+address, "Upstream_port="+strconv.Itoa(port))...)
	addService(l.api, name, name+".example", name)
	applied(l.api, http.MethodPost, "/proxy/gw/service/"+name)
	return name + ".example"
}

// failure returns the status of a failing upstream.
func (l tlsLab) failure(name string) (reason, message string) {
	GinkgoHelper()
	var answer struct {
		Data struct {
			List []struct {
				Upstreams []struct {
					Object, Health string
					Reason         string `json:"health_reason"`
					Message        string `json:"health_message"`
				}
			} `json:"core_db_status"`
		}
	}
	Expect(json.Unmarshal([]byte(read(l.api, "/status")), &answer)).To(Succeed())
	for _, s := range answer.Data.List {
		for _, u := range s.Upstreams {
			if u.Object == "/upstream/"+name {
				return u.Reason, u.Message
			}
		}
	}
	return "", ""
}

// expectBad checks that requests are answered with 503, and that explain and both
// statuses give the reason.
func (l tlsLab) expectBad(name, reason, words string) {
	GinkgoHelper()
	l.expectBadAs("503", name, reason, words)
}

func (l tlsLab) expectBadAs(status, name, reason, words string) {
	GinkgoHelper()
	host := name + ".example"
	Eventually(saidOf).WithArguments(l.api, host).Should(HavePrefix("not_checked: "))
	l.expect(host, "/", status)
	Eventually(saidOf).WithArguments(l.api, host).Should(And(HavePrefix("failing: "), ContainSubstring(words)))
	got, message := l.failure(name)
	Expect(got).To(Equal(reason), message)
	Expect(message).To(ContainSubstring(words))
	Expect(read(l.api, "/upstream/"+name)).To(And(ContainSubstring(`"code":"Failing","status":true,"message":"`), ContainSubstring(jsonText(words))))
}

// jsonText returns a text as it is in a JSON string.
func jsonText(s string) string {
	text, err := json.Marshal(s)
	Expect(err).NotTo(HaveOccurred())
	return string(text[1 : len(text)-1])
}

var _ = Describe("An upstream whose certificate is wrong", Ordered, func() {
	var l tlsLab
	BeforeAll(func() { l = newTLSLab() })

	DescribeTable("receives no byte of a request, and explain and status report why",
		func(name, address string, cert func() tls.Certificate, reason, words string, fields ...string) {
			b := serving(name, "tls", cert())
			l.reach(name, address, b.Port, fields...)
			l.expectBad(name, reason, words)
			Expect(b.Requests()).To(BeZero())
			Expect(b.Touched()).To(BeZero(), "connections with a byte after the handshake")
		},
		Entry("another authority", "foreign", "127.0.0.1",
			func() tls.Certificate {
				return issued(l.other, testkit.CertificateOptions{Names: []string{"127.0.0.1"}})
			},
			"certificate_authority", `its certificate is issued by "CN=other", which does not lead to the authorities of secret "ca": name a secret with its authority`,
			"Upstream_validation_cacertificate=ca"),
		Entry("none of the system's authorities", "unknown", "127.0.0.1",
			func() tls.Certificate {
				return issued(l.other, testkit.CertificateOptions{Names: []string{"127.0.0.1"}})
			},
			"certificate_authority", `which does not lead to the authorities of the system`),
		Entry("another address", "address", "127.0.0.1",
			func() tls.Certificate {
				return issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.2", "localhost"}})
			},
			"certificate_name", "its certificate is for localhost, 127.0.0.2, not for 127.0.0.1: set Upstream_validation_subjectname"),
		Entry("another DNS name", "dns", "localhost",
			func() tls.Certificate {
				return issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1", "a.test"}})
			},
			"certificate_name", "its certificate is for a.test, 127.0.0.1, not for localhost", "Upstream_validation_cacertificate=ca"),
		Entry("another name than the configured one", "stated", "127.0.0.1",
			func() tls.Certificate {
				return issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1", "a.test"}})
			},
			"certificate_name", "not for b.test", "Upstream_validation_subjectname=b.test"),
		Entry("a common name alone", "common", "localhost",
			func() tls.Certificate { return issued(l.ca, testkit.CertificateOptions{Subject: "localhost"}) },
			"certificate_name", "its certificate names no host: renew it with a subject alternative name (SAN) localhost"),
		Entry("expired", "expired", "127.0.0.1",
			func() tls.Certificate {
				return issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1"}, NotAfter: time.Now().Add(-time.Hour)})
			}, "certificate_expired", "its certificate expired on 2"),
		Entry("for clients", "clients", "127.0.0.1",
			func() tls.Certificate {
				return issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1"}, Client: true})
			},
			"certificate", "its certificate is not valid: x509: certificate specifies an incompatible key usage"),
	)

	It("receives nothing either if the certificate is self-signed", func() {
		b := backendWith("self", testkit.BackendOptions{Protocol: "tls"})
		l.reach("self", "127.0.0.1", b.Port)
		l.expectBad("self", "certificate_self_signed", "its certificate is self-signed, and is not among the authorities of the system: store it as a secret")
		Expect(b.Touched()).To(BeZero())
		By("until it is stored and named")
		post(l.api, "/secret", "Secret_name=self", "Secret_cert="+b.Certificate())
		applied(l.api, http.MethodPatch, "/upstream/self", "Upstream_validation_cacertificate=self")
		l.expect("self.example", "/", "self")
	})

	It("without TLS receives only the beginning of a handshake", func() {
		b := backend("plain")
		l.reach("plain", "127.0.0.1", b.Port)
		l.expectBad("plain", "no_tls", "the port does not speak TLS: use Upstream_protocol http or h2c")
		Expect(b.Requests()).To(BeZero())
	})

	It("is unhealthy if it has a health check", func() {
		b := serving("checked", "tls", issued(l.other, testkit.CertificateOptions{Names: []string{"127.0.0.1"}}))
		host := l.reach("checked", "127.0.0.1", b.Port, "Upstream_hc_path="+testkit.HealthPath, "Upstream_hc_intervalseconds=1", "Upstream_hc_timeoutseconds=1")
		Eventually(saidOf).WithArguments(l.api, host).Should(And(HavePrefix("unhealthy: its health check fails: "), ContainSubstring(`is issued by "CN=other"`)))
		Expect(b.Touched()).To(BeZero())
	})

	It("is distinguished from the others of its cluster", func() {
		right := serving("right", "tls", issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1"}}))
		wrong := serving("wrong", "tls", issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1"}}))
		for name, b := range map[string]*testkit.Backend{"right": right, "wrong": wrong} {
			address := map[string]string{"right": "127.0.0.1", "wrong": "127.0.0.2"}[name]
			if name == "wrong" { // the same certificate at another address
				moved := backendWith("moved", testkit.BackendOptions{IP: address, Protocol: "tls", TLS: &tls.Config{
					Certificates: []tls.Certificate{issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1"}})}, MinVersion: tls.VersionTLS12,
				}})
				wrong, b = moved, moved
			}
			post(l.api, "/upstream", "Upstream_name="+name, "Upstream_ip="+address, "Upstream_port="+strconv.Itoa(b.Port), "Upstream_protocol=tls")
		}
		addService(l.api, "pair", "pair.example", "right", "wrong")
		applied(l.api, http.MethodPost, "/proxy/gw/service/pair")
		for range 20 {
			l.expect("pair.example", "/", "right") // retried on the other one
		}
		Expect(wrong.Touched()).To(BeZero())
		Expect(right.Requests()).To(BeNumerically(">=", 20))
	})
})

var _ = Describe("An upstream over TLS", Ordered, func() {
	var l tlsLab
	BeforeAll(func() { l = newTLSLab() })

	DescribeTable("is reached with a valid certificate", func(name, address, protocol string, names []string, fields ...string) {
		b := serving(name, protocol, issued(l.ca, testkit.CertificateOptions{Names: names}))
		l.expect(l.reach(name, address, b.Port, append(fields, "Upstream_protocol="+protocol)...), "/", name)
	},
		Entry("for its address", "address", "127.0.0.1", "tls", []string{"127.0.0.1"}, "Upstream_validation_cacertificate=ca"),
		Entry("by the system's authorities", "system", "127.0.0.1", "tls", []string{"127.0.0.1"}),
		Entry("for its DNS name", "dns", "localhost", "tls", []string{"localhost"}),
		Entry("for its DNS name in upper case", "dnscase", "LocalHost", "tls", []string{"localhost"}),
		Entry("for the configured name", "stated", "127.0.0.1", "tls", []string{"inner.test"}, "Upstream_validation_subjectname=inner.test"),
		Entry("for a wildcard of the configured name", "wildcard", "127.0.0.1", "tls", []string{"*.test"}, "Upstream_validation_subjectname=Inner.test"),
		Entry("for the configured address", "elsewhere", "127.0.0.1", "tls", []string{"192.0.2.7"}, "Upstream_validation_subjectname=192.0.2.7"),
		Entry("over HTTP/2", "two", "127.0.0.1", "h2", []string{"127.0.0.1"}),
		Entry("over HTTP/2 by DNS name", "twodns", "localhost", "h2", []string{"localhost"}),
	)

	DescribeTable("is requested with the right server name", func(name, address string, fields []string, want string) {
		asked := make(chan string, 100)
		b := serving(name, "tls", issued(l.ca, testkit.CertificateOptions{Names: []string{"localhost", "127.0.0.1", "inner.test"}}), func(c *tls.Config) {
			c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				asked <- hello.ServerName
				return nil, nil
			}
		})
		l.expect(l.reach(name, address, b.Port, fields...), "/", name)
		Expect(<-asked).To(Equal(want))
	},
		Entry("if it has a DNS name", "asked", "localhost", nil, "localhost"),
		Entry("or the configured name", "askedstated", "127.0.0.1", []string{"Upstream_validation_subjectname=inner.test"}, "inner.test"),
		Entry("but never for an address", "askedaddress", "127.0.0.1", nil, ""),
	)

	It("passes health checks over TLS", func() {
		b := serving("checked", "h2", issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1"}}))
		host := l.reach("checked", "127.0.0.1", b.Port, "Upstream_protocol=h2", "Upstream_hc_path="+testkit.HealthPath, "Upstream_hc_intervalseconds=1")
		Eventually(saidOf).WithArguments(l.api, host).Should(HavePrefix("healthy: "))
		l.expect(host, "/", "checked")
		b.SetHealthy(false)
		Eventually(saidOf).WithArguments(l.api, host).Should(HavePrefix("unhealthy: its health check is answered with a status other than 200"))
	})

	DescribeTable("must offer HTTP/2 if that is required", func(name, status string, protocols []string) {
		b := serving(name, "tls", issued(l.ca, testkit.CertificateOptions{Names: []string{"127.0.0.1"}}), func(c *tls.Config) {
			inner := c.Clone()
			inner.NextProtos = protocols
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return inner, nil }
		})
		l.reach(name, "127.0.0.1", b.Port, "Upstream_protocol=h2")
		l.expectBadAs(status, name, "no_http2", "it does not offer HTTP/2 in the TLS handshake (ALPN): use Upstream_protocol tls")
		if protocols != nil { // otherwise the backend reads the preface as a request with method PRI
			Expect(b.Requests()).To(BeZero())
			Expect(b.Touched()).To(BeZero(), "no preface of HTTP/2 after a handshake without it")
		}
	},
		Entry("with only HTTP/1.1", "strict", "503", []string{"http/1.1"}),
		// The connection is verified and uses HTTP/2: Envoy cannot require ALPN.
		Entry("with no protocol at all", "vague", "502", nil),
	)

	It("accepts every certificate if it is configured so, with a warning", func() {
		b := serving("any", "tls", issued(l.other, testkit.CertificateOptions{Names: []string{"a.test"}, NotAfter: time.Now().Add(-time.Hour)}))
		const words = "its certificate is not verified (Upstream_tls_insecure): anyone on the network path can read and change requests and answers"
		a := post(l.api, "/upstream", "Upstream_name=any", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(b.Port), "Upstream_protocol=tls", "Upstream_tls_insecure=true")
		Expect(a.Header.Values("Gatehouse-Warning")).To(ConsistOf("/upstream/any: " + words))
		for _, name := range []string{"any", "any2"} {
			addService(l.api, name, name+".example", "any")
			applied(l.api, http.MethodPost, "/proxy/gw/service/"+name)
		}
		l.expect("any.example", "/", "any")
		condition := `{"code":"UpstreamUnverified","status":true,"message":"` + words + `"}`
		Expect(read(l.api, "/upstream/any")).To(ContainSubstring(condition))
		Expect(read(l.api, "/status")).To(ContainSubstring(`"code":"UpstreamUnverified"`))
		By("until it is verified again")
		applied(l.api, http.MethodPatch, "/upstream/any", "Upstream_tls_insecure=false")
		before := b.Touched()
		l.expect("any.example", "/", "503")
		Expect(b.Touched()).To(Equal(before))
		Expect(read(l.api, "/upstream/any")).NotTo(ContainSubstring("UpstreamUnverified"))
	})
})
