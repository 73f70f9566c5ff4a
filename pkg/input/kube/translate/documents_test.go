package translate_test

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The documents of the specification, with the API group of Gatehouse.
const (
	oauth = `
apiVersion: gateway.gatehouse.dev/v1
kind: GlobalConfig
metadata: {name: oauth, namespace: idp, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  name: oauth
  type: globalconfig_oauth
  config: |
    {
      "openid_connect": {
        "provider": {
          "authorization_endpoint": "https://login.example.com/auth",
          "token_endpoint": "https://login.example.com/token"
        },
        "client_id": "gateway",
        "client_secret": "client",
        "client_secret_namespace": "idp",
        "hmac_secret": "hmac",
        "hmac_secret_namespace": "idp",
        "scopes": ["email"],
        "redirect_url": "%REQ(x-forwarded-proto)%://%REQ(:authority)%/oauth2/callback",
        "redirect_path_matcher": "/oauth2/callback",
        "default_signout_path": "/signout"
      },
      "external_oauth_service": {"name": "provider", "namespace": "idp", "port": 443, "protocol": "tls"}
    }`
	idpService = `
apiVersion: v1
kind: Service
metadata: {name: provider, namespace: idp}
spec:
  type: ExternalName
  externalName: login.example.com
  ports: [{port: 443, protocol: TCP, targetPort: 443}]`
	oauthSecrets = `
apiVersion: v1
kind: Secret
metadata: {name: client, namespace: idp}
stringData: {client-secret: "its secret\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: hmac, namespace: idp}
data: {hmac: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHgo=}`
)

var _ = Describe("The examples of docs/kubernetes.md", func() {
	It("work", func() {
		text, err := os.ReadFile("../../../../docs/kubernetes.md")
		Expect(err).NotTo(HaveOccurred())
		_, sections, _ := strings.Cut(string(text), "\n## Hosts and routes\n")
		sections, _, _ = strings.Cut(sections, "\n## What the conditions say\n")
		blocks := strings.Split(sections, "```yaml\n")[1:]
		Expect(blocks).To(HaveLen(9))
		c := newCluster()
		for _, block := range blocks {
			yaml, _, _ := strings.Cut(block, "```")
			c.apply(yaml)
		}
		for _, name := range []string{"shop/web", "shop/orders", "shop/orders-next", "catalog/api"} {
			namespace, name, _ := strings.Cut(name, "/")
			c.apply(strings.NewReplacer("name: web, namespace: shop", "name: "+name+", namespace: "+namespace).Replace(webService))
		}
		c.put(secret("shop/shop-tls", "tls.crt", pems.cert, "tls.key", pems.key))
		c.put(secret("shop/payments-ca", "ca.crt", pems.authority))
		c.put(secret("shop/partners", "mobile", "{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="))
		c.put(secret("gatehouse/oauth-client", "client-secret", "x\n"))
		c.put(secret("gatehouse/oauth-hmac", "hmac", "0123456789abcdef0123456789abcdef"))
		step := c.step()
		Expect(step.Objects).To(HaveLen(13))
		for ref, o := range step.Objects {
			Expect(o.Problems).To(BeEmpty(), ref.String())
		}
		Expect(served(step)).To(ContainElement(HavePrefix("gatehouse catalog.example.com / -> catalog.api.80 behind a login")))
	})
})
