package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// tested is an element of the answers of /certificate/{host}/test.
type tested struct{ Host, Service, State, Directory, Challenge, Issuer, Reason, Advice string }

// startTest asks for a test of a host.
func startTest(api testkit.API, host string) testkit.Answer {
	GinkgoHelper()
	a, err := api.Post(limit(), "/certificate/"+host+"/test")
	Expect(err).NotTo(HaveOccurred())
	return a
}

// testOf returns the last test of a host, with its state and reason.
func testOf(api testkit.API, host string) func() string {
	return func() string {
		GinkgoHelper()
		t := lastTest(api, host)
		return strings.TrimSuffix(t.State+": "+t.Reason, ": ")
	}
}

func lastTest(api testkit.API, host string) tested {
	GinkgoHelper()
	var body struct{ Data map[string][]tested }
	Expect(json.Unmarshal([]byte(read(api, "/certificate/"+host+"/test")), &body)).To(Succeed())
	Expect(body.Data["core_db_certificate_test"]).To(HaveLen(1))
	return body.Data["core_db_certificate_test"][0]
}

var _ = Describe("A test of an automatic certificate", func() {
	It("does all of an order elsewhere, and leaves the certificate in use", func() {
		s := order(testkit.PebbleOptions{}, "")
		staging := pebbleWith(testkit.PebbleOptions{HTTPPort: s.port})
		post(s.api, "/secret", "Secret_name=both", "Secret_cert="+s.pebble.Authority.PEM+staging.Authority.PEM)
		applied(s.api, http.MethodPut, "/globalconfig/authority", "globalconfig_type=globalconfig_acme",
			`config={"directory":"`+s.pebble.Directory+`","terms_agreed":true,"ca_certificate":"both","test_directory":"`+staging.Directory+`"}`)
		told, _ := eventsOf(s.api)
		automatic(s.api, "shop", "shop.test")
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
		serial := certificatesOf(s.api)["shop.test"].Serial
		Eventually(func() string { return s.serialOf("shop.test") }).Should(Equal(serial))
		Expect(read(s.api, "/proxy/gw/explain?url=https://shop.test/")).To(ContainSubstring(`"source":"automatic","host":"shop.test","days_left":89`))
		Expect(startTest(s.api, "SHOP.test").Status).To(Equal(200))
		Eventually(testOf(s.api, "shop.test"), orderTime).Should(Equal("passed"))
		t := lastTest(s.api, "shop.test")
		Expect(t.Issuer).To(HavePrefix("Pebble Intermediate CA"))
		Expect([]string{t.Service, t.Directory, t.Challenge}).To(Equal([]string{"shop", staging.Directory, "http-01"}))
		Expect([]int{staging.Count(testkit.PebbleNewOrder), s.pebble.Count(testkit.PebbleNewOrder)}).To(Equal([]int{1, 1}))
		Expect(certificatesOf(s.api)["shop.test"].Serial).To(Equal(serial))
		Expect(s.serialOf("shop.test")).To(Equal(serial))
		Eventually(told).Should(ContainSubstring(`"code":"CertificateTested"`))
		Eventually(func() []string { return challengesOf(adminOf(s.Gatehouse)) }).Should(BeEmpty())
		Expect(read(s.api, "/metrics")).To(ContainSubstring(`gatehouse_certificate_attempts_total{result="test_passed"} 1`))
		By("and five times in an hour only")
		for range 4 {
			Expect(startTest(s.api, "shop.test").Status).To(Equal(200))
			Eventually(testOf(s.api, "shop.test"), orderTime).Should(Equal("passed"))
		}
		Expect(startTest(s.api, "shop.test").Status).To(Equal(429))
		Expect(startTest(s.api, "other.test").Status).To(Equal(404))
	})

	It("says what is wrong, while the host has a certificate by hand, and runs once at a time", func() {
		s, _ := secure("--provider-allow", "127.0.0.1")
		p := pebbleWith(testkit.PebbleOptions{HTTPPort: freePort()}) // port 80 is closed
		orderFrom(s.api, p, "")
		s.issue("hand", testkit.CertificateOptions{Names: []string{"shop.test"}})
		post(s.api, "/service", "Service_Name=shop", "fqdn=shop.test", "Certificate=auto")
		post(s.api, "/service/shop/secret/hand")
		addRoute(s.api, "shop", "root", "/", "", "blue")
		applied(s.api, http.MethodPost, "/proxy/gw/service/shop")
		Eventually(stateOf(s.api, "shop.test")).Should(Equal("by_hand"))
		Eventually(func() string { return read(s.api, "/proxy/gw/explain?url=https://shop.test/") }).Should(ContainSubstring(`"source":"secret"`))
		asked, answered := make(chan struct{}), make(chan struct{})
		p.Answer(once(testkit.PebbleChallenge, func(http.ResponseWriter, *http.Request) bool {
			close(asked)
			<-answered
			return false
		}))
		Expect(startTest(s.api, "shop.test").Status).To(Equal(200))
		Eventually(asked, orderTime).Should(BeClosed())
		Expect(testOf(s.api, "shop.test")()).To(Equal("running"))
		Expect(challengesOf(adminOf(s.Gatehouse))).To(HaveLen(1))
		Expect(startTest(s.api, "shop.test").Status).To(Equal(409))
		close(answered)
		Eventually(testOf(s.api, "shop.test"), orderTime).Should(HavePrefix("failed: connection: "))
		Expect(lastTest(s.api, "shop.test").Advice).To(HavePrefix("open port 80 of shop.test"))
		Expect(stateOf(s.api, "shop.test")()).To(Equal("by_hand"), "its state is another's")
		Eventually(func() []string { return challengesOf(adminOf(s.Gatehouse)) }).Should(BeEmpty())
	})

	It("is of the hook too", func() {
		program, dir := hookProgram("")
		s := order(testkit.PebbleOptions{}, "", "--acme-dns-exec", program)
		s.provenBy(dir, `"hook":"exec"`)
		automatic(s.api, "shop", "*.shop.test")
		Eventually(stateOf(s.api, "*.shop.test"), orderTime).Should(Equal("issued"))
		Eventually(func() []string { return callsOf(dir) }).Should(HaveLen(2))
		Expect(startTest(s.api, "*.shop.test").Status).To(Equal(200))
		Eventually(testOf(s.api, "*.shop.test"), orderTime).Should(Equal("passed"))
		Eventually(func() []string { return callsOf(dir) }).Should(HaveLen(4))
		Eventually(func() []string { return s.valuesOf("_acme-challenge.shop.test") }).Should(BeEmpty())
	})
})
