package document_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// without returns text without its lines from the one that begins with first
// up to, not including, the one that begins with last.
func without(text, first, last string) string {
	GinkgoHelper()
	from := strings.Index(text, first)
	Expect(from).To(BeNumerically(">=", 0), first)
	to := strings.Index(text[from:], last)
	Expect(to).To(BeNumerically(">", 0), last)
	return text[:from] + text[from+to:]
}

var _ = Describe("link lists", func() {
	It("change nothing when they are absent", func() {
		c := configOf(everything)
		result := c.applied("version: 1\nproxies:\n- name: gw\n  http_port: 80\n", document.ApplyOptions{})
		Expect(result).To(Equal(document.Result{Updated: 1}))
		Expect(c.dump(document.WriteOptions{})).To(Equal(strings.Replace(everything, "http_port: 8080", "http_port: 80", 1)))
	})

	It("of a service can name its proxies, in addition to the services that proxies name", func() {
		c := configOf(everything)
		const shop, blog = "version: 1\nservices:\n- service_name: new\n  fqdn: new.example.com\n  proxies: ", "version: 1\nproxies:\n- {name: gw, services: "
		Expect(c.applied(shop+"[gw]\n", document.ApplyOptions{})).To(Equal(document.Result{Created: 2}))
		Expect(c.applied(shop+"[gw]\n", document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 2}))
		Expect(c.dump(document.WriteOptions{})).To(And(ContainSubstring("  - blog\n  - new\n  - shop\n"), Not(ContainSubstring("  proxies:"))))

		By("a link remains while one end names it, and is removed when neither does")
		both := blog + "[blog, shop]}\nservices:\n- {service_name: new, fqdn: new.example.com, proxies: "
		Expect(c.applied(both+"[gw]}\n", document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 5}))
		Expect(c.applied(blog+"[blog, new, shop]}\nservices:\n- {service_name: new, fqdn: new.example.com, proxies: [gw]}\n",
			document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 5}))
		Expect(c.applied(both+"[]}\n", document.ApplyOptions{})).To(Equal(document.Result{Deleted: 1, Unchanged: 4}))
		Expect(c.applied(shop+"[gw]\n", document.ApplyOptions{}).Created).To(Equal(1))
		Expect(c.applied(shop+"[]\n", document.ApplyOptions{})).To(Equal(document.Result{Deleted: 1, Unchanged: 1}))
		Expect(c.dump(document.WriteOptions{})).To(ContainSubstring("  services:\n  - blog\n  - shop\n"))

		By("errors have a line")
		_, _, err := c.apply(shop+"\n  - gw\n  - other\n", document.ApplyOptions{})
		Expect(model.IsKind(err, model.NotFound)).To(BeTrue())
		Expect(err).To(MatchError(HavePrefix(`line 7: services["new"].proxies[1]: proxy "other" does not exist`)))
		_, _, err = c.apply("version: 1\nservices:\n- service_name: new\n  fqdn: shop.example.com\n  proxies: [gw]\n", document.ApplyOptions{})
		Expect(model.IsKind(err, model.Conflict)).To(BeTrue())
	})

	It("are complete when they are present", func() {
		c := configOf(everything)
		result := c.applied("version: 1\nproxies:\n- name: gw\n  services: [shop]\n  globalconfigs: []\n", document.ApplyOptions{})
		Expect(result).To(Equal(document.Result{Deleted: 2, Unchanged: 2}))
		want := strings.Replace(everything, "  - blog\n  - shop\n  filters:\n  - limit\n  globalconfigs:\n  - oauth\n", "  - shop\n  filters:\n  - limit\n  globalconfigs: []\n", 1)
		Expect(c.dump(document.WriteOptions{})).To(Equal(want))
	})
})

var _ = Describe("hosts", func() {
	const two = `version: 1
services:
- {service_name: a, fqdn: a.example.com}
- {service_name: b, fqdn: b.example.com}
proxies:
- {name: gw, services: [a, b]}
`
	It("can be swapped in one document", func() {
		c := configOf(two)
		c.applied("version: 1\nservices:\n- {service_name: a, fqdn: b.example.com}\n- {service_name: b, fqdn: a.example.com}\n", document.ApplyOptions{})
		Expect(get[*model.Service](c, model.ServiceKey("a")).FQDN).To(Equal("b.example.com"))
	})

	It("may not be claimed twice", func() {
		c := configOf(two)
		_, _, err := c.apply("version: 1\nservices:\n- {service_name: a, fqdn: b.example.com}\n", document.ApplyOptions{})
		Expect(model.IsKind(err, model.Conflict)).To(BeTrue())
		Expect(err).To(MatchError(HavePrefix(`line 3: services["a"]: proxy "gw" already serves host "b.example.com" with service "b"`)))
		Expect(get[*model.Service](c, model.ServiceKey("a")).FQDN).To(Equal("a.example.com"))
	})

	It("move from a pruned service to a new one", func() {
		c := configOf(two)
		c.applied(strings.ReplaceAll(two, "a,", "c,"), document.ApplyOptions{Prune: true})
		Expect(c.dump(document.WriteOptions{})).To(And(ContainSubstring("service_name: c"), Not(ContainSubstring("service_name: a"))))
	})
})

var _ = Describe("prune", func() {
	It("deletes what the document does not name", func() {
		c := configOf(everything)
		smaller := without(everything, "- upstream_name: green", "filters:\n- filter_name")
		smaller = strings.Replace(smaller, "  - ca\n", "", 1)
		smaller = strings.Replace(smaller, "  secrets:\n  routes", "  secrets: []\n  routes", 1)
		smaller = strings.Replace(smaller, "    - green\n", "", 1)
		smaller = without(smaller, "- service_name: blog", "- service_name: shop")
		smaller = strings.Replace(smaller, "  - blog\n", "", 1)
		smaller = without(smaller, "  - route_name: \"123\"", "  - route_name: root")
		smaller = without(smaller, "globalconfigs:\n- ", "services:\n-")
		smaller = strings.Replace(smaller, "  globalconfigs:\n  - oauth\n", "  globalconfigs: []\n", 1)
		// upstream, 2 secrets, global config, service, route, and 4 links
		Expect(c.applied(smaller, document.ApplyOptions{Prune: true})).To(Equal(document.Result{Deleted: 10, Unchanged: 10}))
		Expect(c.dump(document.WriteOptions{})).To(Equal(smaller))
		Expect(c.applied("version: 1\n", document.ApplyOptions{Prune: true}).Deleted).To(Equal(10))
		Expect(c.dump(document.WriteOptions{})).To(Equal("version: 1\n"))
	})

	It("leaves everything else alone unless it is set", func() {
		c := configOf(everything)
		Expect(c.applied("version: 1\n", document.ApplyOptions{})).To(Equal(document.Result{}))
		Expect(c.dump(document.WriteOptions{})).To(Equal(everything))
	})

	It("reports what keeps an object", func() {
		_, _, err := configOf(everything).apply("version: 1\nproxies: [{name: gw}]\n", document.ApplyOptions{Prune: true})
		Expect(model.IsKind(err, model.InUse)).To(BeTrue())
		Expect(err).To(MatchError(HavePrefix(`deleting /service/blog, which the document does not name: service "blog" is in use`)))
	})
})

var _ = Describe("a tag", func() {
	const tagged = `version: 1
upstreams:
- upstream_name: blue
  upstream_ip: 10.0.0.1
  upstream_port: 8080
  tags:
  - shop
`

	It("limits what is written", func() {
		Expect(configOf(everything).dump(document.WriteOptions{Tag: "shop"})).To(Equal(tagged))
	})

	It("is required on every object except routes", func() {
		_, _, err := configOf().apply(everything, document.ApplyOptions{Tag: "shop"})
		Expect(messages(err)).To(HaveLen(8))
		Expect(messages(err)).To(ContainElement(`line 8: upstreams["green"].tags: must have "shop", the tag that this call is limited to`))
		Expect(messages(err)).NotTo(ContainElement(ContainSubstring("routes[")))
	})

	It("limits prune", func() {
		const other = "- upstream_name: red\n  upstream_ip: 10.0.0.2\n  upstream_port: 80\n  tags:\n  - shop\n"
		c := configOf(everything, tagged+other)
		result := c.applied(tagged, document.ApplyOptions{Tag: "shop", Prune: true})
		Expect(result).To(Equal(document.Result{Deleted: 1, Unchanged: 1}))
		Expect(c.dump(document.WriteOptions{})).To(Equal(everything))
	})
})

var _ = It("limits pruning of routes to services that had the tag before", func() {
	const before = `version: 1
services:
- service_name: shop
  fqdn: shop.test
  routes:
  - route_name: root
    route_prefix: /
  - route_name: api
    route_prefix: /api
`
	const tagged = `version: 1
services:
- service_name: shop
  fqdn: shop.test
  tags: [shop]
  routes:
  - route_name: root
    route_prefix: /
`
	c := configOf(before)
	Expect(c.applied(tagged, document.ApplyOptions{Tag: "shop", Prune: true})).To(HaveField("Deleted", 0))
	Expect(c.applied(tagged, document.ApplyOptions{Tag: "shop", Prune: true})).To(HaveField("Deleted", 1))
})

// pair makes a certificate with its key.
func pair(host string) (cert, key string) {
	GinkgoHelper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host, "new.example.com"},
		NotBefore: time.Unix(1_700_000_000, 0), NotAfter: time.Unix(2_000_000_000, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	Expect(err).NotTo(HaveOccurred())
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

const oidc = `version: 1
filters:
- filter_name: login
  filter_type: http_filter_oidc
  filter_config:
    client_id: shop
    client_secret: <redacted>
    redirect_uri: https://shop.example.com/callback
    cookie_secret: cookie
    issuer: https://login.example.com
`

var _ = Describe("secrets", func() {
	const references = `version: 1
secrets:
- secret_name: cookie
  secret_type: generic
- secret_name: shop-tls
  secret_type: tls
  secret_sni: shop.example.com
`
	var c config
	var cert, key string
	BeforeEach(func() {
		c = configOf()
		cert, key = pair("shop.example.com")
		c.write(func(w store.Writer) error {
			if err := store.Create(w, &model.Secret{Name: "cookie", Value: "plain-cookie"}); err != nil {
				return err
			}
			return store.Create(w, &model.Secret{Name: "shop-tls", SNI: "shop.example.com", Cert: cert, PrivateKey: key})
		})
		c.applied(strings.Replace(oidc, "<redacted>", "plain-client", 1), document.ApplyOptions{})
	})

	It("are references, and come back as they are stored", func() {
		want := references + strings.TrimPrefix(oidc, "version: 1\n")
		Expect(c.dump(document.WriteOptions{})).To(Equal(want))
		before := c.dump(document.WriteOptions{Sealed: true})
		Expect(c.applied(want, document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 3}))
		Expect(c.dump(document.WriteOptions{Sealed: true})).To(Equal(before))
	})

	It("can be sealed, and are the same on another server with the same key", func() {
		for _, asJSON := range []bool{false, true} {
			opts := document.WriteOptions{Sealed: true, JSON: asJSON}
			sealed := c.dump(opts)
			Expect(sealed).To(And(ContainSubstring("sealed:v1:"), Not(ContainSubstring("plain-")), Not(ContainSubstring("PRIVATE KEY"))))
			other := configOf(sealed)
			Expect(other.dump(opts)).To(Equal(sealed))
			Expect(get[*model.Secret](other, model.SecretKey("shop-tls")).PrivateKey).To(Equal(get[*model.Secret](c, model.SecretKey("shop-tls")).PrivateKey))
			Expect(other.applied(sealed, document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 3}))
		}
		Expect(c.dump(document.WriteOptions{Sealed: true})).To(ContainSubstring("  secret_cert: |\n    -----BEGIN CERTIFICATE-----\n"))
	})

	It("keep their contents when the reference changes another field", func() {
		before := get[*model.Secret](c, model.SecretKey("shop-tls"))
		c.applied(strings.Replace(references, "secret_sni: shop", "secret_sni: new", 1), document.ApplyOptions{})
		after := get[*model.Secret](c, model.SecretKey("shop-tls"))
		Expect(after.SNI).To(Equal("new.example.com"))
		Expect([]string{after.Cert, after.PrivateKey}).To(Equal([]string{before.Cert, before.PrivateKey}))
	})

	It("are refused as references that do not match what is stored", func() {
		_, _, err := c.apply("version: 1\nsecrets:\n- secret_name: cookie\n  secret_sni: a.example.com\n", document.ApplyOptions{})
		Expect(messages(err)).To(Equal([]string{
			`line 3: secrets["cookie"].secret_value: cannot be combined with a certificate, a key or a host name`,
		}))
	})

	It("are created empty if nothing is stored", func() {
		other := configOf()
		Expect(other.applied(references, document.ApplyOptions{}).Warnings).To(HaveLen(2))
		Expect(other.dump(document.WriteOptions{})).To(Equal(references))
	})

	It("cannot be redacted in a new filter", func() {
		_, _, err := configOf(references).apply(oidc, document.ApplyOptions{})
		Expect(messages(err)).To(Equal([]string{
			`line 3: filters["login"].filter_config.client_secret: is <redacted>, but no value is stored that it could stand for; write the secret itself, or apply what GET /config?secrets=sealed returns`,
		}))
	})
})
