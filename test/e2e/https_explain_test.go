package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// certificateUses returns the conditions of a secret that list the names for which its
// certificate is presented, each with its message.
func certificateUses(body string) (list []string) {
	GinkgoHelper()
	var answer struct {
		Data map[string][]struct {
			Status struct {
				Conditions []struct{ Code, Message string }
			}
		}
	}
	Expect(json.Unmarshal([]byte(body), &answer)).To(Succeed())
	for _, objects := range answer.Data {
		for _, c := range objects[0].Status.Conditions {
			if c.Code == "CertificateServed" || c.Code == "CertificateBeaten" {
				list = append(list, c.Code+" "+c.Message)
			}
		}
	}
	return list
}

var _ = Describe("The information about HTTPS", func() {
	It("includes the certificate that answers, why it does, and which do not", func() {
		s, _ := secure()
		s.serve("all", "*", "*.test", "shop.test")
		s.serve("shop", "shop.test", "shop.test")
		read := func(path string) string {
			GinkgoHelper()
			a, err := s.api.Do(limit(), http.MethodGet, path, "", "")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(200), a.Body)
			return a.Body
		}
		explained := func(target string) string {
			GinkgoHelper()
			return read("/proxy/gw/explain?url=" + url.QueryEscape(target))
		}
		By("explain of a request")
		body := explained("https://shop.test/")
		Expect(body).To(ContainSubstring("the certificate of secret shop of service shop answers: it is for shop.test"))
		Expect(body).To(ContainSubstring("the certificate of secret all of service all is for shop.test too, but service shop has the more exact host"))
		Expect(body).To(ContainSubstring(`"code":"forwarded"`))
		Expect(explained("https://a.b.test/")).To(ContainSubstring("attach a secret with a certificate that covers a.b.test to service all"))

		By("the status of a secret")
		Expect(certificateUses(read("/secret/all"))).To(ConsistOf(
			"CertificateServed *.test on proxy gw: the certificate of secret all of service all answers: it is for *.test",
			"CertificateServed clients that name no host on proxy gw: the certificate of secret all of service all answers: it is for clients that name no host",
			"CertificateBeaten shop.test on proxy gw: the certificate of secret all of service all is for shop.test too, but service shop has the more exact host",
		))
		Expect(certificateUses(read("/secret/shop"))).To(ConsistOf(
			"CertificateServed shop.test on proxy gw: the certificate of secret shop of service shop answers: it is for shop.test",
		))

		By("the resources, without a key")
		pair, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test"}, RSA: true})
		Expect(err).NotTo(HaveOccurred())
		post(s.api, "/secret", "Secret_name=shop-rsa", "Secret_cert="+pair.Cert, "Secret_key="+pair.Key)
		applied(s.api, http.MethodPost, "/service/shop/secret/shop-rsa")
		body = read("/proxy/gw/xds?type=secret")
		for _, name := range []string{`"*.test"`, `"default/"`, `"shop.test"`, `"pair/shop"`, `"pair/shop-rsa"`} {
			Expect(body).To(ContainSubstring(`"name":` + name))
		}
		Expect(body).To(ContainSubstring(`"objects":["/secret/all","/service/all"]`))
		Expect(body).To(ContainSubstring(`"objects":["/secret/shop-rsa"]`))
		Expect(strings.Count(body, "redacted")).To(Equal(5))
		Expect(body).NotTo(ContainSubstring("PRIVATE KEY"))
		Expect(certificateUses(read("/secret/shop-rsa"))).To(ConsistOf(
			"CertificateServed shop.test on proxy gw: the certificate of secret shop-rsa of service shop answers clients that accept RSA only: it is for shop.test",
		))
	})
})
