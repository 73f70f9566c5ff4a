package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// otherAuthority returns a certificate authority that signed nothing, in PEM.
func otherAuthority() string {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

var _ = Describe("The certificate of a TLS backend", Ordered, func() {
	var gw gateway
	var secure, secure2 *testkit.Backend

	BeforeAll(func() {
		_, gw = standalone()
		secure, secure2 = backendWith("secure", testkit.BackendOptions{Protocol: "tls"}), backendWith("secure2", testkit.BackendOptions{Protocol: "h2"})
		post(gw.api, "/secret", "Secret_name=right", "Secret_cert="+secure.Certificate())
		post(gw.api, "/secret", "Secret_name=other", "Secret_cert="+otherAuthority())
		post(gw.api, "/proxy", "Name=gw")
	})

	// reach creates a service in front of a backend, by address or DNS name.
	reach := func(name, address string, b *testkit.Backend, fields ...string) (host string) {
		GinkgoHelper()
		post(gw.api, "/upstream", append([]string{"Upstream_name=" + name, "Upstream_ip=" + address, "Upstream_port=" + strconv.Itoa(b.Port)}, fields...)...)
		addService(gw.api, name, name+".example", name)
		post(gw.api, "/proxy/gw/service/"+name)
		return name + ".example"
	}
	// expectRefused waits for the answer of an Envoy that aborts the handshake: the
	// backend, which others reach, receives no request.
	expectRefused := func(host string, b *testkit.Backend) {
		GinkgoHelper()
		before := b.Requests()
		gw.expect(host, "/", "503")
		Expect(gw.get(host, "/").Body).To(Equal("the service is not available at the moment\n"))
		Expect(b.Requests()).To(Equal(before))
	}

	DescribeTable("is accepted", func(name, address, proto string, fields ...string) {
		b := secure
		if proto == "h2" {
			b = secure2
		}
		gw.expect(reach(name, address, b, append(fields, "Upstream_protocol="+proto)...), "/", b.Name)
	},
		Entry("unchecked, whoever signed it", "unchecked", "127.0.0.1", "tls", "Upstream_tls_insecure=true"),
		Entry("signed by the authority", "signed", "127.0.0.1", "tls", "Upstream_validation_cacertificate=right"),
		Entry("and for the host name", "named", "127.0.0.1", "tls", "Upstream_validation_cacertificate=right", "Upstream_validation_subjectname=example.com"),
		Entry("and for the address", "addressed", "127.0.0.1", "tls", "Upstream_validation_cacertificate=right", "Upstream_validation_subjectname=127.0.0.1"),
		Entry("over HTTP/2", "signed2", "127.0.0.1", "h2", "Upstream_validation_cacertificate=right", "Upstream_validation_subjectname=example.com"),
		Entry("by DNS name, for another configured one", "dns-named", "localhost", "tls", "Upstream_validation_cacertificate=right", "Upstream_validation_subjectname=example.com"),
	)

	DescribeTable("is refused", func(name, address, proto string, fields ...string) {
		b := secure
		if proto == "h2" {
			b = secure2
		}
		expectRefused(reach(name, address, b, append(fields, "Upstream_protocol="+proto)...), b)
	},
		Entry("signed by another authority", "foreign", "127.0.0.1", "tls", "Upstream_validation_cacertificate=other"),
		Entry("for another host name", "misnamed", "127.0.0.1", "tls", "Upstream_validation_cacertificate=right", "Upstream_validation_subjectname=shop.example.net"),
		Entry("for another address", "misaddressed", "127.0.0.1", "tls", "Upstream_validation_cacertificate=right", "Upstream_validation_subjectname=127.0.0.2"),
		Entry("signed by none of the system's authorities", "unknown", "127.0.0.1", "tls"),
		Entry("for another address than the upstream's", "elsewhere", "127.0.0.2", "tls", "Upstream_validation_cacertificate=right"),
		Entry("over HTTP/2", "foreign2", "127.0.0.1", "h2", "Upstream_validation_cacertificate=other", "Upstream_validation_subjectname=example.com"),
		Entry("not for the DNS name of the upstream", "dns", "localhost", "tls", "Upstream_validation_cacertificate=right"),
	)

	It("is verified again on new connections when the authority changes", func() {
		post(gw.api, "/secret", "Secret_name=moving", "Secret_cert="+secure.Certificate())
		host := reach("moving", "127.0.0.1", secure, "Upstream_protocol=tls", "Upstream_validation_cacertificate=moving")
		gw.expect(host, "/", "secure")
		change := func(cert string) {
			GinkgoHelper()
			a, err := gw.api.Post(limit(), "/secret/moving/cert?wait=applied", "Secret_cert="+cert)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		}
		change(otherAuthority())
		gw.expect(host, "/", "secure") // over the existing connection
		secure.Cut()
		expectRefused(host, secure)
		change(secure.Certificate())
		gw.expect(host, "/", "secure")
	})
})
