//go:build idp

package e2e_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A login", func() {
	It("works with Keycloak, which accepts a client's secret only if it is form-encoded", func(ctx SpecContext) {
		speak(func(client testkit.OIDCClient) dialect {
			authority, err := testkit.NewAuthority("keycloak")
			Expect(err).NotTo(HaveOccurred())
			k, err := testkit.StartKeycloak(ctx, GinkgoT().TempDir(), authority, []testkit.OIDCClient{client}, map[string]testkit.OIDCUser{
				"anna": {Password: "pw-anna", Claims: map[string]any{"groups": []string{"cooks", "staff"}}},
				"bert": {Password: "pw-bert", Claims: map[string]any{"groups": []string{"guests"}}},
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() { Expect(k.Kill()).To(Succeed()) })
			return dialect{k.Issuer, k.Port, authority, "", func(b *testkit.Browser, page testkit.Visit, name, password string) (testkit.Visit, error) {
				return b.LogIn(ctx, page, name, password)
			}}
		})
	}, SpecTimeout(5*time.Minute))
})
