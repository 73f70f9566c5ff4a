package e2e_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A limit by a claim of a login", func() {
	It("counts each user, and nobody who has not logged in", func(ctx SpecContext) {
		l := loginGateway(ctx)
		Expect(l.idp.Change(ctx, testkit.OIDCSettings{Users: map[string]testkit.OIDCUser{
			"anna": {Password: "pw", Claims: map[string]any{"email": "anna@shop.test"}}, "ben": {Password: "pw", Claims: map[string]any{"email": "ben@shop.test"}},
		}})).To(Succeed())
		post(l.api, "/filter", "Filter_name=each", "Filter_type=route_filter_ratelimit", `Filter_config={"per":"claim:email","limit":"5/day"}`)
		applied(l.api, http.MethodPost, "/service/shop/route/root/filter/each")
		By("nobody is counted without a login")
		for range 7 {
			status, _, _ := l.ask("shop.test", "shop.test")
			Expect(status).To(Equal(200))
		}
		l.askForLogin("s3cret", `"issuer": "`+l.idp.Issuer+`"`)
		b := l.browser()
		Eventually(func() int {
			v, err := b.Do(ctx, testkit.Request{URL: l.address + "/deep"})
			Expect(err).NotTo(HaveOccurred())
			return v.Status
		}).Should(Equal(http.StatusFound))
		for _, user := range []string{"anna", "ben"} {
			b := l.browser()
			By("each user has five requests: " + user)
			for range 7 { // starts of logins are not counted
				_, err := b.Do(ctx, testkit.Request{URL: l.address + "/deep"})
				Expect(err).NotTo(HaveOccurred())
			}
			page, err := b.Open(ctx, l.address+"/deep")
			Expect(err).NotTo(HaveOccurred())
			first, err := b.LogIn(ctx, page, user, "pw")
			Expect(err).NotTo(HaveOccurred())
			got := []int{first.Status}
			for range 6 {
				v, err := b.Do(ctx, testkit.Request{URL: l.address + "/deep"})
				Expect(err).NotTo(HaveOccurred())
				got = append(got, v.Status)
			}
			Expect(got).To(Equal([]int{200, 200, 200, 200, 200, 429, 429}))
		}
		a := read(l.api, "/proxy/gw/explain?url="+l.address+"/deep")
		Expect(a).To(ContainSubstring("(claim email)"))
	})
})
