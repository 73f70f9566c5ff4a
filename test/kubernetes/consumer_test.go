package kubernetes_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// seen sends a request with an API key and headers, and returns the consumer and groups that the backend was told of, or
// else the status.
func (g gateway) seen(host, key string, headers ...string) string {
	req, err := http.NewRequestWithContext(limit(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", g.port), http.NoBody)
	if err != nil {
		return err.Error()
	}
	req.Host = host
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	var echo testkit.Echo
	if res.StatusCode != http.StatusOK || json.NewDecoder(res.Body).Decode(&echo) != nil {
		return fmt.Sprint(res.StatusCode)
	}
	return strings.Join(echo.Headers["X-Consumer-Name"], "+") + " in " + strings.Join(echo.Headers["X-Consumer-Groups"], "+")
}

// explained returns a function that returns how a request is explained.
func (g gateway) explained(query string) func() (string, error) {
	return func() (string, error) {
		a, err := g.API.Get(limit(), "/proxy/gatehouse/explain?"+query)
		return a.Body, err
	}
}

// consumer creates a Consumer.
func (p place) consumer(name, spec string) {
	GinkgoHelper()
	p.apply("apiVersion: gateway.gatehouse.dev/v1\nkind: Consumer\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
}

// partners creates the Service web, the key set partners with the keys mobile and web, and a host for consumers in the
// group gold. It returns a function that returns a key.
func (p place) partners() func(name string) string {
	GinkgoHelper()
	p.service("web", backend("blue"))
	p.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: partners}\nstringData: {mobile: %q, web: %q}\n",
		model.HashKey([]byte(p.namespace+" mobile")), model.HashKey([]byte(p.namespace+" web")))
	p.filter("keys", "http_filter_apikey", `{"keys":"partners"}`)
	p.filter("known", "http_filter_consumer", `{"allow":["gold"],"deny":["out"]}`)
	p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: web}
spec:
  virtualhost: {fqdn: %s.example}
  filters: [{name: keys}, {name: known}]
  routes: [{services: [{name: web, port: 80}]}]
`, p.namespace)
	return func(name string) string {
		return base64.StdEncoding.EncodeToString([]byte(p.namespace + ".partners/" + name + ":" + p.namespace + " " + name))
	}
}

var _ = Describe("A consumer of a cluster", func() {
	It("is found by its key on the hosts of its namespace, whatever another namespace and clients write", func() {
		shop, evil := newPlace(cluster), newPlace(cluster)
		key, other := shop.partners(), evil.partners()
		host := shop.namespace + ".example"
		acme := shop.namespace + ".acme in gold@" + shop.namespace
		shop.consumer("acme", "groups: [gold], keys: [{secretName: partners, key: mobile}]")
		g := shop.serve("--kubernetes-namespaces", shop.namespace+","+evil.namespace)
		g.envoy()
		Eventually(func() string { return g.seen(host, key("mobile")) }).Should(Equal(acme))
		Eventually(shop.row("consumer", "acme")).Should(Equal(`acme ["gold"] True True Programmed`))
		Expect(g.seen(host, key("web"))).To(Equal("403"), "a key of nobody")
		Eventually(g.explained("url=http://" + host + "/&header=" + url.QueryEscape("x-api-key: "+key("mobile")))).Should(ContainSubstring("consumer " + shop.namespace + ".acme"))

		By("what another namespace can write")
		evil.consumer("acme", "groups: [gold], keys: [{secretName: partners, key: mobile}]")
		evil.consumer(shop.namespace+".acme", "groups: [gold], keys: [{secretName: "+shop.namespace+".partners, key: mobile}, {secretName: "+shop.namespace+".partners, key: web}]")
		evil.consumer("shadow", "groups: [out, "+shop.namespace+"], users: [{filter: "+shop.namespace+".keys, user: mobile}]")
		Eventually(func() string { return g.seen(evil.namespace+".example", other("mobile")) }).Should(Equal(evil.namespace + ".acme in gold@" + evil.namespace))
		for _, name := range []string{shop.namespace + ".acme", "shadow"} {
			Eventually(evil.condition("consumer", name, "Programmed")).Should(HavePrefix("True"))
		}
		Expect([]string{g.seen(host, key("mobile")), g.seen(host, key("web")), g.seen(host, other("mobile")), g.seen(host, other("web"))}).To(Equal([]string{acme, "403", "403", "403"}), "a key of nobody, and keys of another set")
		for _, spec := range []string{
			`groups: ["gold@` + shop.namespace + `"]`, "keys: [{secretName: partners, secretNamespace: " + shop.namespace + ", key: mobile}]",
			"keys: [{secretName: partners, key: mobile, namespace: " + shop.namespace + "}]", "tokens: [{issuer: https://login.example.com, subject: ann}]",
		} {
			_, err := evil.Apply(limit(), "apiVersion: gateway.gatehouse.dev/v1\nkind: Consumer\nmetadata: {name: bad}\nspec: {"+spec+"}\n", "-n", evil.namespace)
			Expect(err).To(HaveOccurred(), spec)
		}
		evil.filter("known", "http_filter_consumer", `{"allow":["gold@`+shop.namespace+`"]}`)
		Eventually(evil.condition("routefilter", "known", "Accepted")).Should(ContainSubstring("is a group of another namespace"))

		By("what clients can write")
		forged := []string{"X-Consumer-Name", acme, "x-consumer-groups", "gold@" + shop.namespace}
		Expect([]string{g.seen(host, key("mobile"), "x-consumer-name", "root", "x-consumer-groups", "all"), g.seen(host, key("web"), forged...), g.seen(host, "", forged...)}).To(
			Equal([]string{acme, "403", "401"}))

		By("deleting what is another's name")
		evil.kubectl("delete", "consumer", "acme", shop.namespace+".acme", "shadow")
		Eventually(func() string { return g.seen(evil.namespace+".example", other("mobile")) }).ShouldNot(ContainSubstring("gold"))
		Expect(g.seen(host, key("mobile"))).To(Equal(acme))

		By("a second consumer of the namespace with the key")
		shop.consumer("late", "groups: [gold], keys: [{secretName: partners, key: mobile}, {secretName: partners, key: web}]")
		Eventually(func() string { return g.seen(host, key("web")) }).Should(Equal(shop.namespace + ".late in gold@" + shop.namespace))
		Eventually(shop.condition("consumer", "late", "Accepted")).Should(Equal("False CredentialConflict (1): spec.keys[0]: Consumer " + shop.namespace + "/acme has it and is older; this one does not have it"))
		Expect(g.seen(host, key("mobile"))).To(Equal(acme))

		By("taking a group away, and the consumer")
		shop.consumer("acme", "groups: [gold, out], keys: [{secretName: partners, key: mobile}]")
		Eventually(func() string { return g.seen(host, key("mobile")) }).Should(Equal("403"))
		shop.kubectl("delete", "consumer", "acme")
		Eventually(func() string { return g.seen(host, key("mobile")) }).Should(Equal(shop.namespace + ".late in gold@" + shop.namespace))
		shop.kubectl("delete", "consumer", "late")
		Eventually(func() []string { return []string{g.seen(host, key("mobile")), g.seen(host, key("web"))} }).Should(Equal([]string{"403", "403"}))
	})

	It("is in groups that a filter of the proxy may name", func() {
		operators, shop := newPlace(cluster), newPlace(cluster)
		key := shop.partners()
		host := shop.namespace + ".example"
		shop.consumer("acme", "groups: [gold], keys: [{secretName: partners, key: mobile}]")
		shop.consumer("globex", "groups: [gold, trial], keys: [{secretName: partners, key: web}]")
		g := shop.serve("--kubernetes-namespaces", shop.namespace+","+operators.namespace)
		g.envoy()
		answers := func() []string { return []string{g.seen(host, key("mobile")), g.seen(host, key("web"))} }
		acme, globex := shop.namespace+".acme in gold@"+shop.namespace, shop.namespace+".globex in gold@"+shop.namespace+",trial@"+shop.namespace
		Eventually(answers).Should(Equal([]string{acme, globex}))
		operators.proxyFilter("trials", "vh_filter_rbac", fmt.Sprintf(`{"allow":[{"methods":["GET"]}],"deny":[{"groups":["trial@%s"]}]}`, shop.namespace), "")
		Eventually(answers).Should(Equal([]string{acme, "403"}))
		operators.proxyFilter("trials", "vh_filter_rbac", `{"allow":[{"methods":["GET"]}],"deny":[{"groups":["trial"]}]}`, "")
		Eventually(answers).Should(Equal([]string{acme, globex}), "a group of its own namespace")
	})
})
