package kubernetes_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The documents of the specification", func() {
	It("require a login at a host with a certificate, until they are changed and deleted", func() {
		p := newPlace(cluster)
		httpPort, httpsPort := freePort(), freePort()
		g := p.serve("--kubernetes-proxy-settings", proxySettings(httpPort, httpsPort))
		g.port = httpPort
		g.envoy()
		authority, err := testkit.NewAuthority("specification")
		Expect(err).NotTo(HaveOccurred())
		pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.example.com"}})
		Expect(err).NotTo(HaveOccurred())
		p.service("shop", backend("blue"))
		p.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: shop-tls}\ntype: kubernetes.io/tls\nstringData: {tls.crt: %q, tls.key: %q}\n", pair.Cert, pair.Key)
		p.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: client-secret}\nstringData: {client-secret: the secret of the client}\n")
		p.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: hmac-secret}\nstringData: {hmac: 0123456789abcdef0123456789abcdef}\n")

		By("applying them unchanged, except for the group and the namespace")
		text, err := os.ReadFile("../../api/gateway/v1/testdata/specification.yaml")
		Expect(err).NotTo(HaveOccurred())
		documents := strings.NewReplacer("namespace: shop", "namespace: "+p.namespace, `_namespace": "shop"`, `_namespace": "`+p.namespace+`"`,
			`"namespace": "shop"`, `"namespace": "`+p.namespace+`"`).Replace(string(text))
		p.apply("%s", documents)
		g.expect("shop.example.com", "302")
		secure := func() string { return overTLS(authority, httpsPort, "shop.example.com") }
		Eventually(secure).Should(HavePrefix("302 https://idp.example.com/authorize?"))

		By("excluding the host from the login")
		p.kubectl("patch", "gatewayhost", "shop", "--type", "merge", "--patch", `{"spec":{"public":true}}`)
		Eventually(secure).Should(Equal("200 "))
		p.kubectl("patch", "gatewayhost", "shop", "--type", "merge", "--patch", `{"spec":{"public":false}}`)
		Eventually(secure).Should(HavePrefix("302 "))

		By("writing an invalid login, through the other version of the API")
		p.kubectl("patch", "globalconfigs.v1beta1.gateway.gatehouse.dev", "global-oauth", "--type", "merge", "--patch", `{"spec":{"config":"{"}}`)
		Eventually(secure).Should(Equal("503 "))
		p.kubectl("delete", "globalconfig", "global-oauth")
		Eventually(secure).Should(Equal("200 "))

		By("naming a filter of the host, and deleting it")
		p.kubectl("patch", "gatewayhost", "shop", "--type", "json", "--patch", `[{"op":"add","path":"/spec/routes/0/filters","value":[{"name":"ratelimit"}]}]`)
		Consistently(secure, "200ms").Should(Equal("200 "))
		p.kubectl("delete", "routefilter", "ratelimit")
		Eventually(secure).Should(Equal("503 "))

		By("deleting the host")
		p.kubectl("delete", "gatewayhost", "shop")
		g.expect("shop.example.com", "404")
	})
})

// clientOf returns a client that connects to a port for every host, and trusts an
// authority.
func clientOf(port int, authority *testkit.Authority) *http.Client {
	return &http.Client{
		Timeout: testkit.Patience,
		Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+strconv.Itoa(port))
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// overTLS sends a request to a host over HTTPS, and returns the status and the target
// of a redirect.
func overTLS(authority *testkit.Authority, port int, host string) string {
	res, err := clientOf(port, authority).Get("https://" + host + "/")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	return strconv.Itoa(res.StatusCode) + " " + res.Header.Get("Location")
}
