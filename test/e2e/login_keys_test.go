package e2e_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// limitOfKeys is more than the time between two requests for keys (providers.Times).
const limitOfKeys = 30 * time.Second

var _ = Describe("A login whose id_token is signed with an unknown key", func() {
	It("fails, is reported, and makes the gateway fetch the keys immediately", func(ctx SpecContext) {
		l := loginGateway(ctx)
		l.askForLogin("s3cret", `"issuer": "`+l.idp.Issuer+`"`)
		Eventually(func() int {
			v, err := l.browser().Do(ctx, testkit.Request{URL: l.address + "/deep"})
			Expect(err).NotTo(HaveOccurred())
			return v.Status
		}).Should(Equal(http.StatusFound), "the provider is known")
		b := l.browser()
		Expect(l.logIn(ctx, b).Status).To(Equal(http.StatusOK))
		Expect(l.idp.Change(ctx, testkit.OIDCSettings{Keys: "replace"})).To(Succeed())

		By("the user gets a page, and the operator the reason")
		page := l.logIn(ctx, l.browser())
		Expect(page.Status).To(Equal(http.StatusUnauthorized))
		Expect(page.Body).To(ContainSubstring("<h1>Your login cannot be verified</h1>"))
		beSafe(page)
		Eventually(l.told).WithArguments("/service/shop").Should(ContainElement(HavePrefix("the id_token is signed with a key that is not known; the keys are fetched again")))

		By("soon the next login succeeds")
		Eventually(func() int { return l.logIn(ctx, l.browser()).Status }).WithTimeout(limitOfKeys).Should(Equal(http.StatusOK))

		By("but the old session does not")
		v, err := b.Open(ctx, l.address+"/deep")
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Status).To(Equal(http.StatusUnauthorized))
	})

	It("differs from one for another audience, or without a claim, which have pages of their own", func(ctx SpecContext) {
		l := loginGateway(ctx)
		l.askForLogin("s3cret", `"issuer": "`+l.idp.Issuer+`"`, `"require": {"email": ["bob@shop.test"]}`)
		Eventually(func() int {
			v, err := l.browser().Do(ctx, testkit.Request{URL: l.address + "/deep"})
			Expect(err).NotTo(HaveOccurred())
			return v.Status
		}).Should(Equal(http.StatusFound), "the provider is known")
		b := l.browser()
		page := l.logIn(ctx, b)
		Expect(page.Status).To(Equal(http.StatusForbidden))
		Expect(page.Header.Get("Content-Type")).To(Equal("text/html; charset=utf-8"))
		Expect(page.Body).To(ContainSubstring("<h1>You have no access</h1>"))
		beSafe(page)
		Eventually(l.told).WithArguments("/service/shop").Should(ContainElement(HavePrefix("a user lacks a claim that is required")))
		By("the way back to the site ends there, too")
		again, err := b.Open(ctx, l.address+"/")
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Status).To(Equal(http.StatusForbidden))
	})
})
