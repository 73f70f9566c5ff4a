package e2e_test

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A configuration that goes to Kubernetes and back", func() {
	It("is the same in another gateway, with the contents of its secrets", func() {
		dir := GinkgoT().TempDir()
		from, to := cliOf(serve("--data-dir", dir)), cliOf(serve())
		from.good("apply", "-f", document(shopDocument))
		from.good("apply", "-f", document(`version: 1
secrets: [{secret_name: Cookies_1, secret_value: "01234567890123456789012345678901"}]
filters:
- filter_name: login
  filter_type: http_filter_oidc
  filter_config: {client_id: a, client_secret: "a text", cookie_secret: Cookies_1, redirect_uri: "https://shop.example.com/callback", authorization_endpoint: "https://idp.example.com/authorize", token_endpoint: "https://idp.example.com/token"}
services: [{service_name: shop, fqdn: shop.example.com, filters: [login]}]
`))
		key := filepath.Join(dir, "secret.key")
		objects := from.good("export", "crd", "--namespace", "shop", "--secret-values", "--secret-key-file", key)
		Expect(objects).To(ContainSubstring("kind: GatewayHost\n"))
		to.good("apply", "-f", document(to.good("import", "crd", document(objects), "--secret-values")))
		Expect(to.good("dump", "--no-revision")).To(Equal(from.good("dump", "--no-revision")))
		again := to.good("export", "crd", "--namespace", "shop")
		Expect(again).NotTo(ContainSubstring("a text"))
		Expect(strings.Count(again, "# kubectl create secret ")).To(Equal(2))
	})
})
