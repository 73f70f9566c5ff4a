package compile_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A service that requires tokens", func() {
	It("is exempt from the login of its proxies", func() {
		takes := func(types ...string) bool {
			t := &model.ServiceTree{Service: &model.Service{Name: "shop"}}
			for _, name := range types {
				t.Filters = append(t.Filters, (&model.Filter{Name: name, Type: name}).Parse())
			}
			return credential.TakesGlobalLogin(t)
		}
		Expect(takes()).To(BeTrue())
		Expect(takes("vh_filter_ipaccess", "route_filter_redirect")).To(BeTrue())
		Expect(takes("http_filter_jwt")).To(BeFalse())
		Expect(takes("http_filter_oidc")).To(BeFalse())
	})
})
