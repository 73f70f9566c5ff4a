package certificates_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/certificates"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("An automatic certificate", func() {
	It("is late in the last sixth of its life, whatever that is", func() {
		ca, err := testkit.NewAuthority("root")
		Expect(err).NotTo(HaveOccurred())
		begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		pair, err := ca.Issue(testkit.CertificateOptions{Names: []string{"shop.test"}, NotBefore: begin, NotAfter: begin.Add(144 * time.Hour)})
		Expect(err).NotTo(HaveOccurred())
		set, shop := certificates.New(), &model.Service{Name: "shop", FQDN: "shop.test", HTTPS: "only"}
		automatic := func(a *model.Automatic) {
			set.Apply(model.Change{
				Entries:   []model.Entry{{Key: shop.Key(), Object: shop}},
				Automatic: map[model.Key]*model.Automatic{shop.Key(): a},
			})
		}
		codes := func(at time.Time) (list []string) {
			conditions, _ := set.Conditions(at)
			for _, c := range conditions {
				list = append(list, c.Code)
			}
			return list
		}
		By("and says nothing of its own before there is one: the order has a condition")
		automatic(&model.Automatic{Host: "shop.test"})
		Expect(codes(begin)).To(BeEmpty())
		placeholder := &model.Automatic{Host: "shop.test", Placeholder: true, Secret: model.AutomaticSecret("shop.test", pair.Cert, "sealed")}
		automatic(placeholder)
		Expect(codes(begin.Add(200 * time.Hour))).To(BeEmpty())
		Expect(set.Ends()).To(BeEmpty())

		automatic(&model.Automatic{Host: "shop.test", Secret: placeholder.Secret})
		Expect(set.Ends()).To(Equal(map[string]time.Time{"automatic:shop.test": begin.Add(144 * time.Hour)}))
		Expect(codes(begin.Add(119 * time.Hour))).To(BeEmpty())
		Expect(codes(begin.Add(120 * time.Hour))).To(Equal([]string{model.CertificateExpires}))
		Expect(codes(begin.Add(144 * time.Hour))).To(Equal([]string{model.CertificateExpired}))
		_, until := set.Conditions(begin)
		Expect(until).To(Equal(begin.Add(120 * time.Hour)))

		automatic(nil)
		Expect(codes(begin)).To(Equal([]string{model.NoCertificate}))
	})
})
