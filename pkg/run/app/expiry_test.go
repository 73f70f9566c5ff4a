package app_test

import (
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A server with a certificate that expires soon", func() {
	It("reports it in the status of the secret and of the services that use it, in events, in metrics and in its log", func() {
		r := serve(settings(GinkgoT().TempDir(), nil))
		base := "http://127.0.0.1:" + r.port()
		lines, _ := events(base)
		ca, err := testkit.NewAuthority("root")
		Expect(err).NotTo(HaveOccurred())
		pair, err := ca.Issue(testkit.CertificateOptions{Names: []string{"shop.example"}, NotAfter: time.Now().Add(24 * time.Hour)})
		Expect(err).NotTo(HaveOccurred())
		post(base, "/service", "Service_Name=shop&fqdn=shop.example")
		post(base, "/secret", url.Values{"Secret_name": {"tls"}, "Secret_cert": {pair.Cert}, "Secret_key": {pair.Key}}.Encode())
		post(base, "/service/shop/secret/tls", "")

		read := func(path string) string {
			GinkgoHelper()
			status, body := call("GET", base+path, "", "")
			Expect(status).To(Equal(200))
			return body
		}
		Eventually(func() string { return read("/service/shop") }).Should(ContainSubstring(`{"code":"CertificateExpires","status":true,"message":"the certificate of secret \"tls\" ends on `))
		Expect(read("/secret/tls")).To(ContainSubstring(`{"code":"CertificateExpires","status":true,"message":"the certificate ends on `))
		Expect(read("/status")).To(And(
			ContainSubstring(`{"path":"/secret/tls","code":"CertificateExpires",`), ContainSubstring(`{"path":"/service/shop","code":"CertificateExpires",`)))
		Expect(read("/metrics")).To(MatchRegexp(`gatehouse_certificate_expiry_seconds\{secret="tls"\} 8[56][0-9]{3}\.`))
		Eventually(lines).Should(gbytes.Say(`"event":"certificate",.*"object":"/secret/tls","code":"CertificateExpires"`))
		ended, err := ca.Issue(testkit.CertificateOptions{Names: []string{"shop.example"}, NotAfter: time.Now().Add(-time.Hour)})
		Expect(err).NotTo(HaveOccurred())
		status, body := call("PATCH", base+"/secret/tls", "application/x-www-form-urlencoded", url.Values{"Secret_cert": {ended.Cert}, "Secret_key": {ended.Key}}.Encode())
		Expect(status).To(Equal(422), body)
		Eventually(r.log).Should(gbytes.Say(`certificate ends.*object=/secret/tls code=CertificateExpires`))
	})
})
