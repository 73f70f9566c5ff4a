package rest_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The certificate of a service", func() {
	var (
		a  *api
		ca *testkit.Authority
	)
	BeforeEach(func() {
		a = startAPI(certified(time.Now))
		ca = authority("root")
	})
	secret := func(name string, names ...string) {
		GinkgoHelper()
		a.given("/secret", pairForm(issue(ca, named(names...)), "Secret_name", name))
	}
	service := func(name, fqdn string, more string) {
		GinkgoHelper()
		a.given("/service", "Service_Name="+name+"&fqdn="+fqdn+more)
	}

	DescribeTable("must match its host", func(fqdn, why string, names ...string) {
		secret("tls", names...)
		service("shop", fqdn, "")
		for _, query := range []string{"?dry_run=true", ""} {
			got := a.post("/service/shop/secret/tls"+query, "")
			if why == "" {
				Expect(got.status).To(BeElementOf(200, 201), got.body)
				continue
			}
			got.expectProblem(422, cannotWork("/service/shop/secret/tls",
				fmt.Sprintf(`secret \"tls\" %s, and the fqdn of service \"shop\" is %s; attach a secret whose certificate is for this host`, why, fqdn)))
		}
	},
		Entry(nil, "Shop.Example.com", "", "shop.example.com"),
		Entry(nil, "shop.example.com", "", "a.example", "*.Example.com"),
		Entry(nil, "shop.example.com", "has a certificate for blog.example.com", "blog.example.com"),
		Entry(nil, "a.shop.example.com", "has a certificate for *.example.com", "*.example.com"),
		Entry(nil, "example.com", "has a certificate for *.example.com", "*.example.com"),
		Entry(nil, "*.example.com", "", "*.example.com"),
		Entry(nil, "*.example.com", "", "shop.example.com"),
		Entry(nil, "*.example.com", "", "*.shop.example.com"),
		Entry(nil, "*.example.com", "has a certificate for shop.example.net", "shop.example.net"),
		Entry(nil, "*", "", "anything.example"),
		Entry(nil, "192.0.2.1", "", "192.0.2.1"),
		Entry(nil, "192.0.2.1", "has a certificate for 192.0.2.2", "192.0.2.2"),
		Entry(nil, "shop.example.com", "has a certificate without a host name: its subject alternative name (SAN) is empty"),
		Entry(nil, "*", "has a certificate without a host name: its subject alternative name (SAN) is empty"),
	)

	It("may be uploaded after it is attached, and Secret_sni counts", func() {
		service("shop", "shop.example.com", "")
		a.given("/secret", "Secret_name=tls", "/service/shop/secret/tls", "")
		p := issue(ca, named("shop.example.com", "blog.example.com"))
		got := a.patch("/secret/tls", pairForm(p, "Secret_sni", "blog.example.com"))
		Expect(got.status).To(Equal(200), got.body)
		Expect(got.header.Values("Gatehouse-Warning")).To(Equal([]string{
			`secret "tls" has a certificate for blog.example.com: service "shop", to which it is attached, has the fqdn shop.example.com`,
		}))
		service("blog", "blog.example.com", "")
		Expect(a.post("/service/blog/secret/tls", "").status).To(Equal(201))
	})

	It("must match a new host of the service", func() {
		secret("tls", "shop.example.com", "*.shop.example.com")
		service("shop", "shop.example.com", "")
		a.given("/service/shop/secret/tls", "")
		Expect(a.patch("/service/shop", "fqdn=a.shop.example.com").status).To(Equal(200))
		got := a.patch("/service/shop", "fqdn=blog.example.com")
		Expect(got.status).To(Equal(422))
		Expect(got.body).To(ContainSubstring(`"errors":[{"field":"fqdn","message":"secret \"tls\" is attached, which has a certificate for shop.example.com, *.shop.example.com"}]`))
		Expect(a.put("/service/shop", "fqdn=blog.example.com").status).To(Equal(422))
		By("one document may change both the host and the certificate")
		a.given("/secret", pairForm(issue(ca, named("blog.example.com")), "Secret_name", "blog"))
		document := "version: 1\nservices:\n- service_name: shop\n  fqdn: blog.example.com\n  secrets: "
		Expect(a.putConfig("", document+"[tls]\n").status).To(Equal(422))
		Expect(a.putConfig("", document+"[blog]\n").status).To(Equal(200))
	})

	It("for other hosts causes a warning if it replaces one", func() {
		service("shop", "shop.example.com", "")
		service("all", "*.example.com", "")
		service("second", "second.example.com", "")
		secret("tls", "shop.example.com", "*.example.com", "second.example.com")
		secret("spare", "second.example.com")
		a.given("/service/shop/secret/tls", "", "/service/all/secret/tls", "", "/service/second/secret/tls", "", "/service/second/secret/spare", "")
		Expect(a.patch("/secret/tls", pairForm(issue(ca, named("*.example.com", "shop.example.com", "new.example.com")))).header).NotTo(HaveKey("Gatehouse-Warning"))
		got := a.patch("/secret/tls", pairForm(issue(ca, named("shop.example.net"))))
		Expect(got.status).To(Equal(200))
		Expect(got.header.Values("Gatehouse-Warning")).To(Equal([]string{
			`service "shop" loses its certificate for shop.example.com: secret "tls" is for shop.example.net now`,
			`service "all" loses its certificate for *.example.com, shop.example.com, new.example.com: secret "tls" is for shop.example.net now`,
		}))
		By("also if the secret is emptied")
		a.given("/secret", pairForm(issue(ca, named("x.example.com")), "Secret_name", "late"), "/service", "Service_Name=x&fqdn=x.example.com", "/service/x/secret/late", "")
		Expect(a.put("/secret/late", "").header.Values("Gatehouse-Warning")).To(Equal([]string{
			`service "x" loses its certificate for x.example.com: secret "late" now has no certificate with a key`,
		}))
	})

	It("is reported missing if the service needs one", func() {
		secret("tls", "shop.example.com")
		a.given("/secret", pairForm(testkit.Pair{Cert: ca.PEM}, "Secret_name", "ca"))
		redirects := `service "shop" redirects plain HTTP to HTTPS and has no certificate for shop.example.com: unless a proxy in front has one, ` +
			`clients cannot follow the redirect; attach a secret with a certificate and its key`
		warned := func(got answer) []string { return got.header.Values("Gatehouse-Warning") }
		Expect(warned(a.post("/service", "Service_Name=shop&fqdn=shop.example.com"))).To(BeEmpty())
		Expect(warned(a.patch("/service/shop", "Https=redirect"))).To(Equal([]string{redirects}))
		Expect(warned(a.patch("/service/shop", "Https=only"))).To(ConsistOf(HavePrefix(`service "shop" answers 403 over plain HTTP and has no certificate for shop.example.com`)))
		Expect(warned(a.patch("/service/shop", "Https=both&Client_validation_cacertificate=ca"))).To(ConsistOf(
			HavePrefix(`service "shop" requests client certificates and has no certificate for shop.example.com itself`)))
		Expect(warned(a.post("/service/shop/secret/tls", ""))).To(BeEmpty())
		Expect(warned(a.patch("/service/shop", "Https=redirect&Client_validation_cacertificate="))).To(BeEmpty())
		Expect(warned(a.delete("/service/shop/secret/tls"))).To(Equal([]string{redirects}))
	})
})

var _ = Describe("A secret that a field names", func() {
	DescribeTable("must have what the field needs, and cannot lose it", func(field, good, why string) {
		a := startAPI(certified(time.Now))
		ca := authority("root")
		a.given("/secret", pairForm(testkit.Pair{Cert: ca.PEM}, "Secret_name", "authorities"),
			"/secret", pairForm(issue(ca, testkit.CertificateOptions{Names: []string{"a"}, Subject: "a"}), "Secret_name", "pair"))
		path, create := "/upstream/u", "Upstream_ip=192.0.2.1&Upstream_port=443&Upstream_protocol=tls"
		if field == "Client_validation_cacertificate" {
			path, create = "/service/s", "fqdn=s.example"
		}
		bad := map[string]string{"authorities": "pair", "pair": "authorities"}[good]
		for _, query := range []string{"?dry_run=true", ""} {
			got := a.put(path+query, create+"&"+field+"="+bad)
			Expect(got.status).To(Equal(422))
			Expect(got.body).To(ContainSubstring(`"errors":[{"field":"` + field + `","message":"names secret \"` + bad + `\", which ` + why + `"}]`))
		}
		Expect(a.put(path, create+"&"+field+"="+good).status).To(Equal(201))
		Expect(a.patch(path, field+"="+bad).status).To(Equal(422))
		By("by replacing the secret")
		other := map[string]testkit.Pair{"authorities": issue(ca, testkit.CertificateOptions{Names: []string{"a"}, Subject: "a"}), "pair": {Cert: ca.PEM}}[good]
		got := a.put("/secret/"+good, pairForm(other))
		Expect(got.status).To(Equal(422))
		Expect(got.body).To(ContainSubstring(`"errors":[{"field":"Secret_cert","message":"` + field + " of " + path + ` names secret \"` + good + `\", which ` + why + `"}]`))
		Expect(a.put("/secret/"+good, "").status).To(Equal(422))
		same := map[string]testkit.Pair{"authorities": {Cert: authority("new").PEM + ca.PEM}, "pair": issue(ca, named("b"))}[good]
		Expect(a.put("/secret/"+good, pairForm(same)).status).To(Equal(200))
	},
		Entry(nil, "Client_validation_cacertificate", "authorities", "has no certificates of authorities: number 1 (CN=a) may not sign others (basicConstraints CA:TRUE)"),
		Entry(nil, "Upstream_validation_cacertificate", "authorities", "has no certificates of authorities: number 1 (CN=a) may not sign others (basicConstraints CA:TRUE)"),
		Entry(nil, "Upstream_client_certificate", "pair", "has no key"),
	)
})
