package translate_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// secret returns the Secret NAMESPACE/NAME with entries: key, value, key, value ...
func secret(name string, entries ...string) *corev1.Secret {
	namespace, name, _ := strings.Cut(name, "/")
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for i := 0; i < len(entries); i += 2 {
		s.Data[entries[i]] = []byte(entries[i+1])
	}
	return s
}

// tlsHost returns a GatewayHost with a certificate and these TLS settings.
func tlsHost(tls string) string {
	return hostOf("  virtualhost: {fqdn: shop.example.com, tls: {" + tls + "}}\n  routes: [{services: [{name: web, port: 80}]}]")
}

// grant returns a ReferenceGrant of team-b for the namespace shop.
func grant(from, to string) string {
	return "apiVersion: gateway.gatehouse.dev/v1\nkind: ReferenceGrant\nmetadata: {name: for-shop, namespace: team-b}\nspec:\n" +
		"  from: [{kind: " + from + ", namespace: shop}]\n  to: [" + to + "]"
}

var _ = Describe("The certificate of a host", func() {
	It("comes from its Secrets, with their effect on requests", func() {
		c := newCluster(webService, tlsHost("secretName: pair, additionalSecrets: [{name: more}], https: redirect, hstsSeconds: 60, clientCASecret: {name: ca}"))
		c.put(secret("shop/pair", "tls.crt", pems.cert, "tls.key", pems.key, "ca.crt", pems.authority))
		c.put(secret("shop/more", "tls.crt", pems.cert, "tls.key", pems.key))
		c.put(secret("shop/ca", "ca.crt", pems.authority))
		step := c.step()
		Expect(problems(step, "GatewayHost shop/web")).To(BeEmpty())
		Expect(find[*model.Service](step, model.ServiceKey("shop.web"))).To(Equal(&model.Service{
			Name: "shop.web", FQDN: "shop.example.com", HTTPS: "redirect", Mode: "http", HSTSSeconds: 60, ClientCACertificate: "shop.ca_ca",
		}))
		find[*model.ServiceSecret](step, model.ServiceSecretKey("shop.web", "shop.pair"))
		find[*model.ServiceSecret](step, model.ServiceSecretKey("shop.web", "shop.more"))
		Expect(find[*model.Secret](step, model.SecretKey("shop.pair"))).To(Equal(&model.Secret{Name: "shop.pair", Type: "tls", Cert: pems.cert, PrivateKey: pems.key}))
		Expect(find[*model.Secret](step, model.SecretKey("shop.ca_ca"))).To(Equal(&model.Secret{Name: "shop.ca_ca", Type: "tls", Cert: pems.authority}))
	})

	It("is for the host name that its Secret specifies", func() {
		c := newCluster(webService, tlsHost("secretName: pair"))
		s := secret("shop/pair", "tls.crt", pems.cert, "tls.key", pems.key)
		s.Annotations = map[string]string{"gateway.gatehouse.dev/sni": "shop.example.com"}
		c.put(s)
		Expect(find[*model.Secret](c.step(), model.SecretKey("shop.pair")).SNI).To(Equal("shop.example.com"))
	})

	It("is read when a host names it, again when it changes, and forgotten when no host names it", func() {
		c := newCluster(webService)
		c.put(secret("shop/pair", "tls.crt", pems.cert, "tls.key", pems.key))
		c.put(secret("shop/other", "value", "x"))
		c.step()
		Expect(c.read).To(BeEmpty())
		c.apply(tlsHost("secretName: pair"))
		c.step()
		Expect(c.read).To(Equal([]translate.Ref{{Kind: "Secret", Namespace: "shop", Name: "pair"}}))
		Expect(c.UsesSecret(c.read[0])).To(BeTrue())
		By("the other half of the pair")
		c.put(secret("shop/pair", "tls.crt", pems.cert, "tls.key", pems.otherKey))
		step := c.step()
		Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{
			"spec.virtualhost.tls.secretName Invalid: Secret shop/pair has an entry tls.key that does not belong to the certificate",
		}))
		Expect(shown(step)).To(Equal([]string{"- /service/shop.web/secret/shop.pair", "+ /secret/shop.pair"}))
		Expect(find[*model.Secret](step, model.SecretKey("shop.pair"))).To(Equal(&model.Secret{Name: "shop.pair"}))
		c.apply(tlsHost("https: both"))
		Expect(shown(c.step())).To(Equal([]string{"- /secret/shop.pair"}))
		Expect(c.UsesSecret(c.read[0])).To(BeFalse())
		By("a host names it again")
		c.apply(tlsHost("secretName: pair"))
		c.step()
		Expect(c.read).To(HaveLen(2))
	})

	It("remains as it was while its Secret cannot be read", func() {
		c := newCluster(webService, tlsHost("secretName: pair"))
		c.put(secret("shop/pair", "tls.crt", pems.cert, "tls.key", pems.key))
		c.step()
		c.SecretUnreadable(translate.Ref{Kind: "Secret", Namespace: "shop", Name: "pair"}, "forbidden")
		Expect(c.step().IsEmpty()).To(BeTrue())
	})

	It("is missing if its Secret was never read", func() {
		c := newCluster(webService, webSlice, tlsHost("secretName: pair"))
		refs := c.Settle()
		Expect(refs).To(HaveLen(1))
		c.SecretUnreadable(refs[0], "the ServiceAccount may not get secrets")
		step := c.step()
		Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{
			"spec.virtualhost.tls.secretName RefNotFound: Secret shop/pair cannot be read: the ServiceAccount may not get secrets",
		}))
		Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80"}))
	})
})

var _ = DescribeTable("Without a usable certificate, plain HTTP remains as the host specifies:", func(https string, want ...string) {
	step := newCluster(webService, webSlice, tlsHost("secretName: none, https: "+https)).step()
	Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{"spec.virtualhost.tls.secretName RefNotFound: Secret shop/none does not exist"}))
	Expect(served(step)).To(Equal(want))
},
	Entry("both", "both", "gatehouse shop.example.com / -> shop.web.80"),
	Entry("only", "only", "gatehouse shop.example.com / -> 403", "gatehouse shop.example.com / -> shop.web.80"),
	Entry("redirect", "redirect", "gatehouse shop.example.com / -> redirect", "gatehouse shop.example.com / -> redirect", "gatehouse shop.example.com / -> redirect",
		"gatehouse shop.example.com / -> redirect", "gatehouse shop.example.com / -> shop.web.80"),
)

var _ = DescribeTable("A Secret cannot be used for a certificate", func(entries func() []string, problem string) {
	c := newCluster(webService, tlsHost("secretName: pair"))
	c.put(secret("shop/pair", entries()...))
	Expect(problems(c.step(), "GatewayHost shop/web")).To(Equal([]string{"spec.virtualhost.tls.secretName Invalid: Secret shop/pair " + problem}))
},
	Entry("without a key", func() []string { return []string{"tls.crt", pems.cert} }, "has no certificate with its key: it needs the entries tls.crt and tls.key"),
	Entry("if it is empty", func() []string { return nil }, "has no certificate with its key: it needs the entries tls.crt and tls.key"),
	Entry("with a damaged certificate", func() []string { return []string{"tls.crt", pems.cert[:100], "tls.key", pems.key} },
		"has an entry tls.crt that has a damaged PEM block, number 1 of 1: it is cut off, or is not base64"),
	Entry("with text instead of the key", func() []string { return []string{"tls.crt", pems.cert, "tls.key", "key"} },
		"has an entry tls.key that contains no PEM key (-----BEGIN PRIVATE KEY-----)"),
	Entry("with text that has a reserved prefix", func() []string { return []string{"value", "sealed:v1:AAAA"} },
		"has a value that was sealed with another key or for another object"),
)

var _ = DescribeTable("Without usable client certificate authorities, the host is closed:", func(ref string, entries func() []string, problem string) {
	c := newCluster(webService, webSlice, tlsHost("secretName: pair, clientCASecret: "+ref))
	c.put(secret("shop/pair", "tls.crt", pems.cert, "tls.key", pems.key))
	if entries != nil {
		c.put(secret("shop/ca", entries()...))
	}
	c.put(secret("team-b/ca", "ca.crt", pems.authority))
	step := c.step()
	Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{"spec.virtualhost.tls.clientCASecret " + problem}))
	Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> 503"}))
	Expect(c.read).NotTo(ContainElement(HaveField("Namespace", "team-b")))
},
	Entry("a missing Secret", "{name: ca}", nil, "RefNotFound: Secret shop/ca does not exist"),
	Entry("a Secret of another namespace", "{name: ca, namespace: team-b}", nil,
		"RefNotPermitted: Secret team-b/ca may not be named from namespace shop: a ReferenceGrant in namespace team-b must allow it (from kind GatewayHost of namespace shop, to kind Secret)"),
	Entry("a Secret without authorities", "{name: ca}", func() []string { return []string{"a", "b", "c", "d"} }, "Invalid: Secret shop/ca has no certificate authorities: it needs the entry ca.crt"),
	Entry("a Secret with a host's certificate", "{name: ca}", func() []string { return []string{"ca.crt", pems.cert} },
		"Invalid: Secret shop/ca has no certificates of authorities: number 1 () may not sign others (basicConstraints CA:TRUE)"),
)

var _ = Describe("A ReferenceGrant", func() {
	const named = "spec.virtualhost.tls.secretName"
	hostWith := tlsHost("secretName: pair, secretNamespace: team-b")

	DescribeTable("lets a namespace use objects of another one", func(from, to string, allowed bool) {
		c := newCluster(webService, hostWith, grant(from, to))
		c.put(secret("team-b/pair", "tls.crt", pems.cert, "tls.key", pems.key))
		step := c.step()
		if !allowed {
			Expect(problems(step, "GatewayHost shop/web")).To(HaveExactElements(HavePrefix(named + " RefNotPermitted: ")))
			Expect(c.read).To(BeEmpty())
			return
		}
		Expect(problems(step, "GatewayHost shop/web")).To(BeEmpty())
		find[*model.ServiceSecret](step, model.ServiceSecretKey("shop.web", "team-b.pair"))
	},
		Entry("all Secrets", "GatewayHost", "{kind: Secret}", true),
		Entry("one Secret", "GatewayHost", "{kind: Service}, {kind: Secret, name: pair}", true),
		Entry("another Secret", "GatewayHost", "{kind: Secret, name: other}", false),
		Entry("Services", "GatewayHost", "{kind: Service, name: pair}", false),
		Entry("another kind", "GlobalConfig", "{kind: Secret}", false),
	)

	It("allows nothing while ReferenceGrants cannot be read", func() {
		c := newCluster(webService, hostWith)
		c.SetUnreadable("ReferenceGrant", "the service account may not list referencegrants")
		Expect(problems(c.step(), "GatewayHost shop/web")).To(Equal([]string{
			named + " RefNotPermitted: Secret team-b/pair may not be named from namespace shop, because no ReferenceGrant can be read: the service account may not list referencegrants",
		}))
	})

	It("is for its own namespace and for those that it names, and works as long as it exists", func() {
		for _, text := range []string{
			strings.Replace(grant("GatewayHost", "{kind: Secret}"), "namespace: shop", "namespace: shop-2", 1),
			strings.Replace(grant("GatewayHost", "{kind: Secret}"), "namespace: team-b", "namespace: shop", 1),
		} {
			Expect(problems(newCluster(webService, hostWith, text).step(), "GatewayHost shop/web")).To(HaveExactElements(HavePrefix(named + " RefNotPermitted: ")))
		}
		c := newCluster(webService, hostWith)
		c.put(secret("team-b/pair", "tls.crt", pems.cert, "tls.key", pems.key))
		Expect(problems(c.step(), "GatewayHost shop/web")).To(HaveLen(1))
		c.apply(grant("GatewayHost", "{kind: Secret}"))
		step := c.step()
		Expect(problems(step, "GatewayHost shop/web")).To(BeEmpty())
		c.remove("ReferenceGrant team-b/for-shop")
		step = c.step()
		Expect(problems(step, "GatewayHost shop/web")).To(HaveLen(1))
		Expect(shown(step)).To(ContainElements("- /service/shop.web/secret/team-b.pair", "- /secret/team-b.pair"))
	})
})

var _ = Describe("A name", func() {
	It("is shortened if it would be too long, and remains unique", func() {
		long := strings.Repeat("a", 248)
		for i, name := range []string{long, long + "a", long + "b"} {
			c := newCluster(strings.Replace(webHost, "name: web, namespace", "name: "+name+", namespace", 1))
			step := c.step()
			made := objectIn(step, "GatewayHost shop/"+name).Made[0].Key.Name()
			Expect(len(made)).To(BeNumerically("<=", 253))
			Expect(made).To(HavePrefix("shop.aaaa"))
			Expect(strings.Contains(made, "_")).To(Equal(i > 0), fmt.Sprint(len(name)))
		}
	})
})
