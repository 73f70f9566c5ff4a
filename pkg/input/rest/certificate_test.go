package rest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// certified is an API that checks writes and returns warnings.
func certified(now func() time.Time) func(*rest.Options) {
	return func(o *rest.Options) {
		rules := precheck.Rules{Now: now}
		o.Check, o.Warn = rules.Check, rules.Warnings
		rules.Restoring = true
		o.CheckRollback = rules.Check
	}
}

func authority(name string) *testkit.Authority {
	GinkgoHelper()
	a, err := testkit.NewAuthority(name)
	Expect(err).NotTo(HaveOccurred())
	return a
}

func issue(a *testkit.Authority, o testkit.CertificateOptions) testkit.Pair {
	GinkgoHelper()
	p, err := a.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	return p
}

func named(names ...string) testkit.CertificateOptions {
	return testkit.CertificateOptions{Names: names}
}

// pairForm are the fields of a pair; more are further fields.
func pairForm(p testkit.Pair, more ...string) string {
	form := url.Values{"Secret_cert": {p.Cert}, "Secret_key": {p.Key}}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form.Encode()
}

var _ = Describe("A certificate", func() {
	var (
		ca, between *testkit.Authority
		shop        testkit.Pair
	)
	BeforeEach(func() {
		var err error
		ca = authority("root")
		between, err = ca.Authority("between")
		Expect(err).NotTo(HaveOccurred())
		shop = issue(ca, testkit.CertificateOptions{Names: []string{"shop.example.com"}, Subject: "shop"})
	})

	DescribeTable("is refused by every write", func(made func() testkit.Pair, sni, field, message string) {
		a := startAPI(certified(time.Now))
		a.given("/secret", pairForm(shop, "Secret_name", "shop"), "/secret", pairForm(shop, "Secret_name", "other"))
		before, fingerprint := a.everyList(), a.get("/secret/shop").body
		p := made()
		more := []string{}
		if sni != "" {
			more = []string{"Secret_sni", sni}
		}
		refused := func(got answer) {
			GinkgoHelper()
			Expect(got.status).To(BeElementOf(400, 422), got.body)
			Expect(got.body).To(ContainSubstring(`"field":"` + field + `"`))
			Expect(got.body).To(ContainSubstring(message))
			Expect(got.body).NotTo(ContainSubstring(core(shop.Key)))
		}
		refused(a.post("/secret", pairForm(p, append(more, "Secret_name", "new")...)))
		refused(a.put("/secret/shop", pairForm(p, more...)))
		refused(a.put("/secret/new", pairForm(p, more...)))
		refused(a.patch("/secret/shop", pairForm(p, more...)))
		refused(a.patch("/secret/shop?dry_run=true", pairForm(p, more...)))
		if sni == "" {
			contentType, body := multipartOf("@Secret_key", p.Key, "@Secret_cert", p.Cert)
			for _, path := range []string{"/secret/shop/cert", "/secret/shop/key"} {
				refused(a.do(http.MethodPost, path, contentType, strings.NewReader(body)))
			}
		}
		document, err := json.Marshal(map[string]any{"version": 1, "secrets": []any{map[string]any{
			"secret_name": "shop", "secret_sni": sni, "secret_cert": p.Cert, "secret_key": p.Key,
		}}})
		Expect(err).NotTo(HaveOccurred())
		got := a.do(http.MethodPut, "/config", "application/json", bytes.NewReader(document))
		Expect(got.status).To(BeElementOf(400, 422), got.body)
		Expect(strings.ToLower(got.body)).To(And(ContainSubstring(strings.ToLower(field)), ContainSubstring(strings.ToLower(message))))
		a.expectNothingStored(2, before)
		Expect(a.get("/secret/shop").body).To(Equal(fingerprint))
	},
		Entry("with the wrong key", func() testkit.Pair { return testkit.Pair{Cert: shop.Cert, Key: issue(ca, named("a")).Key} }, "",
			"Secret_key", "does not belong to the certificate; send both in one call to replace both"),
		Entry("with a key among the certificates", func() testkit.Pair { return testkit.Pair{Cert: shop.Cert + shop.Key, Key: shop.Key} }, "",
			"Secret_cert", `contains a PEM block \"PRIVATE KEY\"; only CERTIFICATE is allowed here; send the key as Secret_key`),
		Entry("that is truncated", func() testkit.Pair { return testkit.Pair{Cert: shop.Cert[:200], Key: shop.Key} }, "",
			"Secret_cert", "has a damaged PEM block, number 1 of 1: it is cut off, or is not base64"),
		Entry("whose chain is truncated", func() testkit.Pair {
			return testkit.Pair{Cert: shop.Cert + ca.PEM[:len(ca.PEM)-30], Key: shop.Key}
		}, "", "Secret_cert", "has a damaged PEM block, number 2 of 2: it is cut off, or is not base64"),
		Entry("in damaged base64", func() testkit.Pair { return testkit.Pair{Cert: strings.Replace(shop.Cert, "M", "?", 1), Key: shop.Key} }, "",
			"Secret_cert", "has a damaged PEM block, number 1 of 1: it is cut off, or is not base64"),
		Entry("that cannot be parsed", func() testkit.Pair {
			return testkit.Pair{Cert: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", Key: shop.Key}
		}, "", "Secret_cert", "contains a certificate that cannot be read"),
		Entry("that has expired", func() testkit.Pair {
			return issue(ca, testkit.CertificateOptions{Names: []string{"shop.example.com"}, NotAfter: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), NotBefore: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)})
		}, "", "Secret_cert", "expired on 2026-01-02T03:04:05Z"),
		Entry("that does not have the name in Secret_sni", func() testkit.Pair { return shop }, "blog.example.com",
			"Secret_sni", `\"blog.example.com\" is not a name of the certificate, which is for shop.example.com; leave this empty to serve all of them`),
		Entry("without any name for Secret_sni", func() testkit.Pair { return issue(ca, named()) }, "blog.example.com",
			"Secret_sni", "the certificate has no host name: its subject alternative name (SAN) is empty"),
		Entry("after its issuer", func() testkit.Pair { return testkit.Pair{Cert: ca.PEM + shop.Cert, Key: shop.Key} }, "",
			"Secret_cert", "has certificate 2 (CN=shop), which did not sign certificate 1 (CN=root); put the host's certificate first, and after each certificate the one that signed it"),
		Entry("with an unrelated one in its chain", func() testkit.Pair { return testkit.Pair{Cert: shop.Cert + authority("stranger").PEM, Key: shop.Key} }, "",
			"Secret_cert", "has certificate 2 (CN=stranger), which did not sign certificate 1 (CN=shop)"),
		Entry("with a gap in its chain", func() testkit.Pair {
			leaf := issue(between, named("shop.example.com"))
			return testkit.Pair{Cert: leaf.Cert + ca.PEM, Key: leaf.Key}
		}, "", "Secret_cert", "has certificate 2 (CN=root), which did not sign certificate 1"),
	)

	It("is accepted with its chain, and with the comments and line ends of files, and is stored without these", func() {
		a := startAPI(certified(time.Now))
		leaf := issue(between, testkit.CertificateOptions{Names: []string{"Shop.Example.com", "*.shop.example.com", "192.0.2.1"}, RSA: true})
		odd := "\ufeffBag Attributes\n    friendlyName: shop\nsubject=CN = shop\n" + strings.ReplaceAll(leaf.Cert, "\n", "\r\n") + "\n# between\n" + between.PEM + ca.PEM + "\n\n"
		a.given("/secret", pairForm(testkit.Pair{Cert: odd, Key: "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + leaf.Key}, "Secret_name", "shop"))
		Expect(a.get("/secret/shop").body).To(ContainSubstring(`"issuer":"CN=between","host_names":["shop.example.com","*.shop.example.com","192.0.2.1"]`))
		By("which is the same as without them")
		a.put("/secret/shop", pairForm(testkit.Pair{Cert: leaf.Cert + between.PEM + ca.PEM, Key: leaf.Key})).expectWrite(200, updatedSecret, "1")
	})

	It("that has expired since remains as it is, and can be restored by a rollback", func() {
		now := time.Now()
		clock := func() time.Time { return now }
		a := startAPI(certified(clock))
		a.given("/secret", pairForm(shop, "Secret_name", "shop")) // 1
		now = now.Add(2 * time.Hour)
		Expect(a.patch("/secret/shop", "tags=x").status).To(Equal(200))                  // 2
		Expect(a.put("/secret/shop", pairForm(shop, "tags", "y")).status).To(Equal(200)) // 3
		Expect(a.putConfig("", a.get("/config").body).status).To(Equal(200))             // nothing is different
		longer := issue(ca, testkit.CertificateOptions{Names: []string{"shop.example.com"}, NotAfter: now.Add(time.Hour)})
		Expect(a.patch("/secret/shop", pairForm(longer)).status).To(Equal(200)) // 4
		Expect(a.patch("/secret/shop", pairForm(shop)).status).To(Equal(422))
		got := a.post("/revision/3/rollback", "")
		Expect(got.status).To(Equal(200), got.body)
		Expect(got.header.Values("Gatehouse-Warning")).To(ConsistOf(MatchRegexp(`^the certificate of secret "shop" expired on [0-9T:-]*Z: clients refuse it$`)))
		Expect(a.delete("/secret/shop").status).To(Equal(200))
		Expect(a.post("/revision/3/rollback", "").status).To(Equal(200))
	})

	It("that is not valid yet causes a warning", func() {
		a := startAPI(certified(func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }))
		p := issue(ca, testkit.CertificateOptions{Names: []string{"a"}, NotBefore: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)})
		Expect(a.post("/secret", pairForm(p, "Secret_name", "s")).header.Values("Gatehouse-Warning")).To(Equal([]string{
			`the certificate of secret "s" is not valid before 2026-02-03T04:05:06Z: clients refuse it until then`,
		}))
	})
})
