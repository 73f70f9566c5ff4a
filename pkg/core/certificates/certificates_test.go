package certificates_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/certificates"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestCertificates(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "certificates")
}

var _ = Describe("Conditions of certificates", func() {
	var (
		set *certificates.Set
		ca  *testkit.Authority
		end = time.Date(2027, 3, 31, 12, 0, 0, 0, time.UTC)
	)
	const day = 24 * time.Hour
	BeforeEach(func() {
		set = certificates.New()
		var err error
		ca, err = testkit.NewAuthority("root")
		Expect(err).NotTo(HaveOccurred())
	})
	secret := func(name string, hosts ...string) *model.Secret {
		GinkgoHelper()
		p, err := ca.Issue(testkit.CertificateOptions{Names: hosts, NotAfter: end})
		Expect(err).NotTo(HaveOccurred())
		return &model.Secret{Name: name, Cert: p.Cert, PrivateKey: "sealed", NotAfter: new(model.At(end))}
	}
	apply := func(objs ...model.Object) bool {
		change := model.Change{}
		for _, o := range objs {
			change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
		}
		return set.Apply(change)
	}
	remove := func(keys ...model.Key) bool {
		change := model.Change{}
		for _, k := range keys {
			change.Entries = append(change.Entries, model.Entry{Key: k})
		}
		return set.Apply(change)
	}
	said := func(at time.Time) (list []string) {
		conditions, _ := set.Conditions(at)
		for _, c := range conditions {
			list = append(list, c.Key.Path()+" "+c.Code+": "+c.Message)
		}
		return list
	}

	It("appear with time, on the secret and on what uses it", func() {
		blue := &model.Upstream{Name: "blue", ValidationCACertificate: "tls", ClientCertificate: "tls"}
		Expect(apply(secret("tls", "shop.example"), &model.Service{Name: "shop", FQDN: "shop.example", HTTPS: "both"},
			&model.ServiceSecret{Service: "shop", Secret: "tls"}, blue)).To(BeTrue())
		Expect(set.Ends()).To(Equal(map[string]time.Time{"tls": end}))

		list, until := set.Conditions(end.Add(-30*day - time.Second))
		Expect(list).To(BeEmpty())
		Expect(until).To(Equal(end.Add(-30 * day)))

		_, until = set.Conditions(end.Add(-30 * day))
		Expect(until).To(Equal(end))
		for _, at := range []time.Time{end.Add(-30 * day), end.Add(-time.Second)} {
			Expect(said(at)).To(Equal([]string{
				"/secret/tls CertificateExpires: the certificate ends on 2027-03-31T12:00:00Z, and /service/shop, /upstream/blue use it; upload a new one",
				`/service/shop CertificateExpires: the certificate of secret "tls" ends on 2027-03-31T12:00:00Z; upload a new one to /secret/tls`,
				`/upstream/blue CertificateExpires: the certificate of secret "tls" ends on 2027-03-31T12:00:00Z; upload a new one to /secret/tls`,
			}))
		}
		_, until = set.Conditions(end)
		Expect(until).To(BeZero())
		Expect(said(end)).To(HaveExactElements(
			"/secret/tls CertificateExpired: the certificate expired on 2027-03-31T12:00:00Z, and /service/shop, /upstream/blue use it; upload a new one",
			HavePrefix("/service/shop CertificateExpired: "), HavePrefix("/upstream/blue CertificateExpired: "),
		))
		By("they disappear with the user of the certificate")
		Expect(apply(&model.Upstream{Name: "blue"})).To(BeTrue())
		Expect(remove(model.ServiceSecretKey("shop", "tls"))).To(BeTrue())
		Expect(said(end)).To(Equal([]string{"/secret/tls CertificateExpired: the certificate expired on 2027-03-31T12:00:00Z; nothing uses it; upload a new one"}))
		Expect(remove(model.SecretKey("tls"))).To(BeTrue())
		Expect(said(end)).To(BeEmpty())
		Expect(set.Ends()).To(BeEmpty())
	})

	It("remain while one of two uses remains", func() {
		apply(secret("tls", "shop.example"), &model.Service{Name: "shop", FQDN: "shop.example", HTTPS: "both", ClientCACertificate: "tls"},
			&model.ServiceSecret{Service: "shop", Secret: "tls"})
		apply(&model.Service{Name: "shop", FQDN: "shop.example", HTTPS: "both"})
		Expect(said(end)).To(ContainElement(HavePrefix("/service/shop CertificateExpired")))
		apply(&model.Service{Name: "shop", FQDN: "shop.example", HTTPS: "both", ClientCACertificate: "tls"})
		remove(model.ServiceSecretKey("shop", "tls"))
		Expect(said(end)).To(ContainElement(HavePrefix("/service/shop CertificateExpired")))
		remove(model.ServiceKey("shop"))
		Expect(said(end)).To(HaveLen(1))
	})

	It("name the certificates that are for other hosts, and the services that lack one", func() {
		early := end.Add(-31 * day)
		apply(secret("tls", "blog.example"), &model.ServiceSecret{Service: "shop", Secret: "tls"},
			&model.Service{Name: "shop", FQDN: "shop.example", HTTPS: "redirect"})
		Expect(said(early)).To(Equal([]string{
			`/service/shop/secret/tls CertificateNotForHost: secret "tls" has a certificate for blog.example, and the fqdn of service "shop" is shop.example: it is not shown for this service`,
			`/service/shop NoCertificate: service "shop" redirects plain HTTP to HTTPS and has no certificate for shop.example: unless a proxy in front has one, ` +
				`clients cannot follow the redirect; attach a secret with a certificate and its key`,
		}))
		Expect(apply(secret("tls", "shop.example"))).To(BeTrue())
		Expect(said(early)).To(BeEmpty())
		remove(model.ServiceSecretKey("shop", "tls"))
		Expect(said(early)).To(ConsistOf(HavePrefix("/service/shop NoCertificate: ")))
		apply(&model.Service{Name: "shop", FQDN: "shop.example", HTTPS: "both"})
		Expect(said(early)).To(BeEmpty())
	})

	It("cost nothing for a change that does not concern certificates", func() {
		apply(secret("tls", "shop.example"), &model.Service{Name: "shop", FQDN: "shop.example", HTTPS: "both"})
		Expect(apply(&model.Service{Name: "shop", FQDN: "blog.example", HTTPS: "both"}, &model.Upstream{Name: "blue"}, &model.Route{Service: "shop", Name: "root"})).To(BeFalse())
		Expect(set.Apply(model.Change{Full: true})).To(BeTrue())
		Expect(said(end)).To(BeEmpty())
	})
})
