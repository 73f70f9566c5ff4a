package e2e_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// told returns why logins fail at the service, from its status.
func (l loginSite) told(path string) (messages []string) {
	GinkgoHelper()
	var object struct {
		Status struct {
			Conditions []struct{ Code, Message string }
		}
	}
	only(l.api, path, &object)
	for _, c := range object.Status.Conditions {
		if c.Code == "LoginFailing" {
			messages = append(messages, c.Message)
		}
	}
	return messages
}

// begun starts a login and returns its state.
func (l loginSite) begun(ctx context.Context, b *testkit.Browser) string {
	GinkgoHelper()
	v, err := b.Do(ctx, testkit.Request{URL: l.address + "/deep"})
	Expect(err).NotTo(HaveOccurred())
	to, err := v.Location()
	Expect(err).NotTo(HaveOccurred())
	return to.Query().Get("state")
}

var _ = Describe("Why a login fails", func() {
	It("is in the status of the service, in events, in the log and in metrics", func(ctx SpecContext) {
		l := loginGateway(ctx)
		events, _ := eventsOf(l.api)
		l.askForLogin("wrong")
		b := l.browser()
		Expect(l.logIn(ctx, b).Status).To(Equal(http.StatusUnauthorized))
		Eventually(l.told).WithArguments("/service/shop").Should(ConsistOf(HavePrefix("wrong client secret at the token endpoint: ")))
		Expect(l.told("/filter/staff")).To(ConsistOf(HavePrefix("on service shop: wrong client secret at the token endpoint: ")))
		Expect(read(l.api, "/status")).To(ContainSubstring(`"code":"LoginFailing"`))
		Expect(read(l.api, "/metrics")).To(ContainSubstring(`gatehouse_login_failures_total{reason="wrong_client_secret"} 1`))
		Eventually(l.Records).WithArguments("login failed").Should(HaveLen(1))
		records := l.Records("login failed")
		Expect(records[0]).To(And(HaveKeyWithValue("service", "shop"), HaveKeyWithValue("code", "wrong_client_secret")))
		Expect(read(l.api, "/service/shop")).To(ContainSubstring("(request " + records[0]["request_id"].(string) + ")"))
		Eventually(events).Should(ContainSubstring(`"object":"/service/shop","code":"wrong_client_secret","message":"wrong client secret`))

		By("with a provider that is slow, broken, and away")
		applied(l.api, http.MethodPatch, "/filter/staff", l.oidcFilter("s3cret"))
		for reason, fault := range map[string]testkit.OIDCFault{
			"the token endpoint answers 500":                          {Status: 500, Body: "marker"},
			"the token endpoint does not answer in time":              {DelayMilliseconds: 7000},
			"the answer of the token endpoint has no access token":    {Status: 200, Body: `{"marker":"marker"}`},
			"the token endpoint refuses the code":                     {Status: 400, Body: `{"error":"invalid_grant","error_description":"marker"}`},
			"the token endpoint answers 400 (unsupported_grant_type)": {Status: 400, Body: `{"error":"unsupported_grant_type"}`},
		} {
			Expect(l.idp.Change(ctx, testkit.OIDCSettings{Faults: map[string]testkit.OIDCFault{"/token": fault}})).To(Succeed())
			Expect(l.logIn(ctx, l.browser()).Status).To(Equal(http.StatusUnauthorized))
			Eventually(l.told).WithArguments("/service/shop").Should(ContainElement(HavePrefix(reason)))
		}
		Expect(l.idp.Change(ctx, testkit.OIDCSettings{Faults: map[string]testkit.OIDCFault{"/token": {}}})).To(Succeed())

		By("with a user who cancels, and a browser that never began")
		b = l.browser()
		_, err := b.Open(ctx, l.address+"/callback?error=access_denied&error_description=marker&state="+l.begun(ctx, b))
		Expect(err).NotTo(HaveOccurred())
		Eventually(l.told).WithArguments("/service/shop").Should(ContainElement(HavePrefix("a user canceled the login")))
		_, err = b.Open(ctx, l.address+"/callback?code=marker&state=marker")
		Expect(err).NotTo(HaveOccurred())
		Eventually(l.told).WithArguments("/service/shop").Should(ContainElement(HavePrefix("a browser came back from the identity provider without the cookies")))

		By("with an untrusted certificate, once there is a new connection")
		other, err := testkit.NewAuthority("other")
		Expect(err).NotTo(HaveOccurred())
		state := l.begun(ctx, b)
		applied(l.api, http.MethodPatch, "/secret/idp-ca", "Secret_cert="+url.QueryEscape(other.PEM))
		Eventually(func() []string {
			_, err := b.Open(ctx, l.address+"/callback?code=marker&state="+state)
			Expect(err).NotTo(HaveOccurred())
			return l.told("/service/shop")
		}).Should(ContainElement(HavePrefix("the token endpoint refuses the code")))
		for _, text := range []string{l.Stdout.String(), l.Stderr.String(), read(l.api, "/service/shop"), read(l.api, "/status"), read(l.api, "/metrics")} {
			for _, line := range strings.Split(text, "\n") {
				Expect(line).NotTo(ContainSubstring("marker"))
			}
		}
	})
})
