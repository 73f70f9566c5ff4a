package e2e_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Other specs of headers are in test/policies.
var _ = Describe("A filter that changes headers", func() {
	It("removes one that the backend sends, and explain reports it", func() {
		_, gw, _ := shop()
		Expect(gw.get("shop.example", "/").Header).To(HaveKey("X-Backend"))
		post(gw.api, "/filter", "Filter_name=plain", "Filter_type=route_filter_headers", `Filter_config={"request":{"remove":["x-debug"]},"response":{"remove":["x-backend"]}}`)
		applied(gw.api, http.MethodPost, "/service/shop/filter/plain")
		Expect(gw.get("shop.example", "/").Header).NotTo(HaveKey("X-Backend"))
		Expect(read(gw.api, "/proxy/gw/explain?url=http://shop.example/")).To(ContainSubstring(
			"changes headers: of the request removes x-debug; of the answer removes x-backend"))
	})
})
