package kubernetes_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// grant creates a ReferenceGrant: objects of a kind in another namespace may name those in to.
func (p place) grant(name, kind string, from place, to string) {
	GinkgoHelper()
	p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: ReferenceGrant
metadata: {name: %s}
spec:
  from: [{kind: %s, namespace: %s}]
  to: [%s]
`, name, kind, from.namespace, to)
}

var _ = Describe("A ReferenceGrant", func() {
	It("makes the Services and the certificates that it names available to hosts of another namespace, as long as it exists", func() {
		shop, catalog := newPlace(cluster), newPlace(cluster)
		port, securePort := freePort(), freePort()
		g := shop.serve("--kubernetes-namespaces", shop.namespace+","+catalog.namespace, "--kubernetes-proxy-settings", proxySettings(port, securePort))
		g.port = port
		g.envoy()
		authority, err := testkit.NewAuthority("grants")
		Expect(err).NotTo(HaveOccurred())
		pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"catalog.example"}})
		Expect(err).NotTo(HaveOccurred())
		secure := func() string { return overTLS(authority, securePort, "catalog.example") }
		catalog.service("api", backend("blue"))
		catalog.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: pair}\ntype: kubernetes.io/tls\nstringData: {tls.crt: %q, tls.key: %q}\n", pair.Cert, pair.Key)
		shop.service("web", backend("green"))
		shop.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: catalog}
spec:
  virtualhost: {fqdn: catalog.example, tls: {secretName: pair, secretNamespace: %[1]s}}
  routes: [{services: [{name: api, namespace: %[1]s, port: 80}]}]
`, catalog.namespace)
		// marked waits until an Envoy has everything that was written before.
		marked := func(name string) {
			GinkgoHelper()
			shop.host(name, name+".example", "web")
			g.expect(name+".example", "200 green")
		}
		closed := func() {
			GinkgoHelper()
			g.expect("catalog.example", "503")
			Eventually(secure).ShouldNot(HavePrefix("200"))
			Eventually(shop.row("gatewayhost", "catalog")).Should(Equal("catalog catalog.example gatehouse False RefNotPermitted"))
		}
		closed()
		says := "may not be named from namespace " + shop.namespace + ": a ReferenceGrant in namespace " + catalog.namespace +
			" must allow it (from kind GatewayHost of namespace " + shop.namespace + ", to kind %s)"
		Expect(shop.condition("gatewayhost", "catalog", "ResolvedRefs")()).To(Equal("False RefNotPermitted (1): " +
			"spec.virtualhost.tls.secretName: Secret " + catalog.namespace + "/pair " + fmt.Sprintf(says, "Secret") + "; " +
			"spec.routes[0].services[0].name: Service " + catalog.namespace + "/api " + fmt.Sprintf(says, "Service")))

		By("grants of other objects, and for others")
		catalog.grant("others", "GatewayHost", shop, "{kind: Service, name: another}, {kind: Secret, name: another}")
		catalog.grant("itself", "GatewayHost", catalog, "{kind: Service}, {kind: Secret}")
		catalog.grant("logins", "GlobalConfig", shop, "{kind: Service}, {kind: Secret}")
		shop.grant("here", "GatewayHost", shop, "{kind: Service}, {kind: Secret}")
		marked("first")
		closed()

		By("the grant of the Service")
		catalog.grant("service", "GatewayHost", shop, "{kind: Service, name: api}")
		g.expect("catalog.example", "200 blue")
		Expect(secure()).NotTo(HavePrefix("200"))
		Eventually(shop.condition("gatewayhost", "catalog", "ResolvedRefs")).Should(HavePrefix("False RefNotPermitted (1): spec.virtualhost.tls.secretName: "))

		By("the grant of the Secret")
		catalog.grant("secret", "GatewayHost", shop, "{kind: Secret}")
		Eventually(secure).Should(Equal("200 "))
		Eventually(shop.row("gatewayhost", "catalog")).Should(Equal("catalog catalog.example gatehouse True Programmed"))

		By("deleting them")
		catalog.kubectl("delete", "referencegrants.gateway.gatehouse.dev", "service", "secret")
		closed()
	})

	It("makes the Secrets of a login available; without it, the login lets nobody in", func() {
		shop, keys := newPlace(cluster), newPlace(cluster)
		g := shop.serve("--kubernetes-namespaces", shop.namespace+","+keys.namespace)
		g.envoy()
		for _, name := range []string{"oauth-client", "oauth-hmac"} {
			keys.kubectl("create", "secret", "generic", name, "--from-literal=value=8Jc1vF3h0yQm2Wd7Zt5Rk9Xb4Ns6Lp0A")
		}
		shop.service("web", backend("blue"))
		shop.host("shop", "shop.example", "web")
		g.expect("shop.example", "200 blue")
		shop.apply(`
apiVersion: v1
kind: Service
metadata: {name: login}
spec: {type: ExternalName, externalName: login.example.com, ports: [{port: 443}]}
---
apiVersion: gateway.gatehouse.dev/v1
kind: GlobalConfig
metadata: {name: oauth}
spec:
  name: oauth
  type: globalconfig_oauth
  config: |
    {"openid_connect": {
       "provider": {"authorization_endpoint": "https://login.example.com/auth", "token_endpoint": "https://login.example.com/token"},
       "client_id": "gateway", "client_secret": "oauth-client", "client_secret_namespace": %[1]q, "hmac_secret": "oauth-hmac", "hmac_secret_namespace": %[1]q,
       "scopes": ["email"], "redirect_url": "%%REQ(x-forwarded-proto)%%://%%REQ(:authority)%%/oauth2/callback",
       "redirect_path_matcher": "/oauth2/callback", "default_signout_path": "/signout"},
     "external_oauth_service": {"name": "login", "port": 443, "protocol": "tls"}}
`, keys.namespace)
		closed := func() {
			GinkgoHelper()
			g.expect("shop.example", "503")
			Eventually(shop.condition("globalconfig", "oauth", "ResolvedRefs")).Should(
				HavePrefix("False RefNotPermitted (1): spec.config: Secret " + keys.namespace + "/oauth-"))
		}
		closed()
		keys.grant("one", "GlobalConfig", shop, "{kind: Secret, name: oauth-hmac}")
		Eventually(shop.condition("globalconfig", "oauth", "ResolvedRefs")).ShouldNot(ContainSubstring("oauth-hmac"))
		closed()
		keys.grant("both", "GlobalConfig", shop, "{kind: Secret}")
		g.expect("shop.example", "302")
		Eventually(shop.row("globalconfig", "oauth")).Should(HaveSuffix(" True Programmed"))
		keys.kubectl("delete", "referencegrants.gateway.gatehouse.dev", "both")
		closed()
	})
})
