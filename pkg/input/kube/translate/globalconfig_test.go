package translate_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

const limits = `
apiVersion: gateway.gatehouse.dev/v1
kind: GlobalConfig
metadata: {name: limits, namespace: shop, creationTimestamp: "2026-01-02T00:00:00Z", generation: 3}
spec:
  type: globalconfig_ratelimit
  config: '{"domain": "shop", "descriptors": [{"key": "remote_address", "rate_limit": {"unit": "second", "requests_per_unit": 5}}]}'`

// twoHosts returns GatewayHosts of two proxies; the second one's is public.
func twoHosts() string {
	edge := strings.NewReplacer("name: web, namespace", "name: edge, namespace", "spec:", "spec:\n  proxy: edge").Replace(webHost)
	return webHost + "\n---\n" + edge
}

var _ = Describe("A GlobalConfig", func() {
	It("becomes a global config that applies to every proxy, with the same ID in every replica", func() {
		step := newCluster(limits).step()
		g := find[*model.GlobalConfig](step, model.GlobalConfigKey("shop.limits"))
		Expect(string(g.Config)).To(Equal(`{"domain":"shop","descriptors":[{"key":"remote_address","rate_limit":{"unit":"second","requests_per_unit":5}}]}`))
		Expect(g.Type).To(Equal("globalconfig_ratelimit"))
		Expect(g.CreateTS.Year()).To(Equal(2026))
		Expect(g.ID).To(And(BeNumerically(">", int64(1)<<52), BeNumerically("<", int64(1)<<53)))
		Expect(find[*model.GlobalConfig](newCluster(limits, webHost).step(), g.Key()).ID).To(Equal(g.ID))
		Expect(*objectIn(step, "GlobalConfig shop/limits")).To(Equal(translate.Object{
			Generation: 3, Proxies: []string{"edge", "gatehouse"}, Made: []translate.Made{{Key: g.Key()}},
		}))
	})

	It("orders no certificates", func() {
		const authority = `
apiVersion: gateway.gatehouse.dev/v1
kind: GlobalConfig
metadata: {name: ca, namespace: shop}
spec: {type: globalconfig_acme, config: '{"directory":"staging","terms_agreed":true}'}`
		step := newCluster(authority).step()
		Expect(shown(step)).NotTo(ContainElement(ContainSubstring("globalconfig")))
		Expect(objectIn(step, "GlobalConfig shop/ca").Problems).To(ContainElement(And(
			HaveField("Path", "spec.type"), HaveField("Message", ContainSubstring("cert-manager")))))
	})

	It("applies to the proxy that it names", func() {
		c := newCluster(limits + "\n  proxy: edge")
		Expect(shown(c.step())).To(ContainElements("+ /globalconfig/shop.limits", "+ /proxy/edge/globalconfig/shop.limits"))
		c.apply(limits)
		Expect(shown(c.step())).To(Equal([]string{"- /proxy/edge/globalconfig/shop.limits"}))
		c.apply(limits + "\n  proxy: elsewhere")
		step := c.step()
		Expect(shown(step)).To(Equal([]string{"- /globalconfig/shop.limits"}))
		Expect(*objectIn(step, "GlobalConfig shop/limits")).To(Equal(translate.Object{Generation: 3, Ignored: true}))
	})

	It("names the Service and the key of a collector, whose appProtocol decides between gRPC and HTTP", func() {
		const service = `
apiVersion: v1
kind: Service
metadata: {name: collector, namespace: tools}
spec: {ports: [{name: grpc, port: 4317, appProtocol: kubernetes.io/h2c}, {name: http, port: 4318}]}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: tools}
stringData: {value: Bearer abc}`
		for port, protocol := range map[string]string{"4317": "h2c", "4318": "http"} {
			for _, kind := range []string{model.GlobalConfigTracing, model.GlobalConfigAccessLog} {
				step := newCluster(service, `
apiVersion: gateway.gatehouse.dev/v1
kind: GlobalConfig
metadata: {name: telemetry, namespace: tools}
spec: {type: `+kind+`, config: '{"upstream": "collector.`+port+`", "credential": {"secret": "key"}}'}`).step()
				Expect(problems(step, "GlobalConfig tools/telemetry")).To(BeEmpty())
				upstream := upstreamsOf(step)[0]
				Expect(upstream.Protocol).To(Equal(protocol))
				Expect(string(find[*model.GlobalConfig](step, model.GlobalConfigKey("tools.telemetry")).Config)).To(MatchJSON(`{"upstream": "` + upstream.Name + `", "credential": {"secret": "tools.key"}}`))
				Expect(find[*model.Secret](step, model.SecretKey("tools.key")).Value).To(Equal("Bearer abc"))
			}
		}
	})

	It("reports what is wrong with it", func() {
		step := newCluster(strings.Replace(limits, `"shop"`, `""`, 1)).step()
		Expect(problems(step, "GlobalConfig shop/limits")).To(Equal([]string{"spec.config Invalid: domain: is required"}))
		Expect(shown(step)).To(Equal([]string{"+ /proxy/edge", "+ /proxy/gatehouse"}))
	})
})

var _ = Describe("A login of all hosts", func() {
	It("is configured by the specification's document, unchanged", func() {
		c := newCluster(oauth, idpService, oauthSecrets)
		step := c.step()
		Expect(problems(step, "GlobalConfig idp/oauth")).To(BeEmpty())
		upstream := upstreamsOf(step)[0]
		Expect(upstream.Name).To(HavePrefix("idp.provider.443."))
		want := model.NewUpstream()
		want.Name, want.IP, want.Port, want.Protocol, want.ValidationSubjectName = upstream.Name, "login.example.com.", 443, "tls", "login.example.com"
		Expect(upstream).To(Equal(want))
		Expect(string(find[*model.GlobalConfig](step, model.GlobalConfigKey("idp.oauth")).Config)).To(MatchJSON(`{
			"openid_connect": {
				"provider": {"authorization_endpoint": "https://login.example.com/auth", "token_endpoint": "https://login.example.com/token"},
				"client_id": "gateway", "client_secret": "idp.client", "hmac_secret": "idp.hmac",
				"client_secret_namespace": "idp", "hmac_secret_namespace": "idp", "scopes": ["email"],
				"redirect_url": "%REQ(x-forwarded-proto)%://%REQ(:authority)%/oauth2/callback", "redirect_path_matcher": "/oauth2/callback",
				"default_signout_path": "/signout", "upstream": "` + upstream.Name + `"
			}
		}`))
		Expect(find[*model.Secret](step, model.SecretKey("idp.client")).Value).To(Equal("its secret"))
		Expect(find[*model.Secret](step, model.SecretKey("idp.hmac")).Value).To(And(HaveLen(32), HaveSuffix("\n"))) // bytes, not a text that ends with a line feed
	})

	It("leaves public hosts alone", func() {
		step := newCluster(strings.Replace(webHost, "spec:", "spec:\n  public: true", 1), webService, webSlice, oauth, idpService, oauthSecrets).step()
		Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80"}))
	})

	It("may use a Service in the cluster, with the Service's protocol", func() {
		step := newCluster(oauth, oauthSecrets, `
apiVersion: v1
kind: Service
metadata: {name: provider, namespace: idp, annotations: {gateway.gatehouse.dev/upstream: '{"protocol":"h2","tls":{"caSecret":{"name":"ca"}}}'}}
spec: {ports: [{port: 443}]}`, "apiVersion: v1\nkind: Secret\nmetadata: {name: ca, namespace: idp}\nstringData: {ca.crt: "+quoted(pems.authority)+"}").step()
		Expect(problems(step, "GlobalConfig idp/oauth")).To(BeEmpty())
		upstream := upstreamsOf(step)[0]
		Expect([]string{upstream.IP, upstream.Protocol, upstream.ValidationSubjectName, upstream.ValidationCACertificate}).
			To(Equal([]string{"provider.idp.svc", "h2", "login.example.com", "idp.ca_ca"}))
		Expect(step.Endpoints).To(HaveKey(upstream.Key()))
	})

	DescribeTable("closes every host that it would protect if it cannot work:", func(change func(string) string, problem string) {
		documents := []string{twoHosts(), webService, webSlice}
		for _, doc := range []string{oauth, idpService, oauthSecrets} {
			documents = append(documents, change(doc))
		}
		step := newCluster(documents...).step()
		Expect(problems(step, "GlobalConfig idp/oauth")).To(Equal([]string{"spec.config " + problem}))
		Expect(served(step)).To(Equal([]string{"edge shop.example.com / -> 503", "gatehouse shop.example.com / -> 503"}))
	},
		Entry("not JSON", replaced(`"client_id"`, `client_id`), "Invalid: is not JSON: invalid character 'c' looking for beginning of object key string"),
		Entry("an invalid field", replaced(`"/signout"`, `"signout"`), `Invalid: openid_connect.default_signout_path: "signout" must be a path, which starts with "/"`),
		Entry("a Secret that does not exist", replaced("{name: hmac,", "{name: other,"), "RefNotFound: Secret idp/hmac does not exist"),
		Entry("a Secret with two entries", replaced("{client-secret:", "{other: x, client-secret:"), "Invalid: Secret idp/client must have a single entry, and has 2"),
		Entry("an empty Secret", replaced(`{client-secret: "its secret\n"}`, "{}"), "Invalid: Secret idp/client must have a single entry, and has 0"),
		Entry("a Secret in another namespace", replaced(`"client_secret_namespace": "idp"`, `"client_secret_namespace": "shop"`),
			"RefNotPermitted: Secret shop/client may not be named from namespace idp: a ReferenceGrant in namespace shop must allow it (from kind GlobalConfig of namespace idp, to kind Secret)"),
		Entry("an invalid Secret name", replaced(`"hmac_secret": "hmac"`, `"hmac_secret": "my_hmac"`), `RefNotFound: "my_hmac" is not the name of a Secret`),
		Entry("a Service that does not exist", replaced("{name: provider,", "{name: other,"), "RefNotFound: Service idp/provider does not exist"),
		Entry("a Service in another namespace", replaced(`"namespace": "idp"`, `"namespace": "shop"`),
			"RefNotPermitted: Service shop/provider may not be named from namespace idp: a ReferenceGrant in namespace shop must allow it (from kind GlobalConfig of namespace idp, to kind Service)"),
		Entry("invalid settings of its Service", replaced("namespace: idp}\nspec:\n  type", "namespace: idp, annotations: {gateway.gatehouse.dev/upstream: '{'}}\nspec:\n  type"),
			"Invalid: Service idp/provider has an annotation gateway.gatehouse.dev/upstream that cannot be used: unexpected EOF"),
		Entry("settings of its Service that use Secrets of another namespace", replaced("namespace: idp}\nspec:\n  type",
			`namespace: idp, annotations: {gateway.gatehouse.dev/upstream: '{"tls":{"clientSecret":{"name":"x","namespace":"shop"}}}'}}`+"\nspec:\n  type"),
			"Invalid: Service idp/provider has an annotation gateway.gatehouse.dev/upstream that cannot be used: a Secret must be in the namespace of the Service"),
	)

	It("comes from the oldest GlobalConfig of a proxy; the others report that", func() {
		second := strings.NewReplacer("name: oauth, namespace: idp", "name: second, namespace: idp", "2026-01-01", "2026-01-02", `"gateway"`, `"second"`).Replace(oauth)
		c := newCluster(twoHosts(), webService, webSlice, idpService, oauthSecrets, oauth+"\n  proxy: edge", second)
		step := c.step()
		Expect(problems(step, "GlobalConfig idp/oauth")).To(BeEmpty())
		Expect(problems(step, "GlobalConfig idp/second")).To(Equal([]string{
			"spec.type LoginConflict: GlobalConfig idp/oauth sets the login of proxy edge and is older; this one does not apply there",
		}))
		Expect(shown(step)).To(ContainElements("+ /proxy/edge/globalconfig/idp.oauth", "+ /proxy/gatehouse/globalconfig/idp.second"))
		Expect(served(step)).To(Equal([]string{
			"edge shop.example.com / -> shop.web.80 behind a login", "gatehouse shop.example.com / -> shop.web.80 behind a login",
		}))
		By("the older one applies to all proxies")
		c.apply(oauth)
		step = c.step()
		Expect(shown(step)).To(Equal([]string{"- /proxy/edge/globalconfig/idp.oauth", "- /proxy/gatehouse/globalconfig/idp.second", "- /globalconfig/idp.second"}))
		By("the older one is deleted")
		c.remove("GlobalConfig idp/oauth")
		step = c.step()
		Expect(problems(step, "GlobalConfig idp/second")).To(BeEmpty())
		Expect(shown(step)).To(Equal([]string{"+ /globalconfig/idp.second", "- /globalconfig/idp.oauth"}))
	})
})

func replaced(old, now string) func(string) string {
	return func(text string) string { return strings.Replace(text, old, now, 1) }
}

// quoted returns a text as a YAML scalar in one line.
func quoted(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }

var _ = Describe("A host name", func() {
	const (
		first  = "GatewayHost shop/web"
		second = "GatewayHost shop/late"
	)
	late := strings.NewReplacer("name: web, namespace", "name: late, namespace", "2026-01-01", "2026-01-02", "shop.example.com", "Shop.Example.com", "prefix: /", "prefix: /late").Replace(webHost)

	It("belongs to the oldest GatewayHost of a proxy; the others report which one has it", func() {
		c := newCluster(late, webService, webSlice)
		steps := []translate.Step{c.step()}
		Expect(problems(steps[0], second)).To(BeEmpty())
		c.apply(webHost)
		steps = append(steps, c.step())
		Expect(problems(steps[1], second)).To(Equal([]string{
			"spec.virtualhost.fqdn HostConflict: GatewayHost shop/web has the host Shop.Example.com on proxy gatehouse and is older; this one is left out",
		}))
		Expect(problems(steps[1], first)).To(BeEmpty())
		Expect(served(steps...)).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80"}))
		c.remove(first)
		steps = append(steps, c.step())
		Expect(problems(steps[2], second)).To(BeEmpty())
		Expect(served(steps...)).To(Equal([]string{"gatehouse shop.example.com /late -> shop.web.80"}))
	})

	It("may be on two proxies", func() {
		step := newCluster(webHost, strings.Replace(late, "spec:", "spec:\n  proxy: edge", 1), webService, webSlice).step()
		Expect(problems(step, first)).To(BeEmpty())
		Expect(problems(step, second)).To(BeEmpty())
	})

	It("belongs to the first host by name if two have the same age", func() {
		step := newCluster(strings.Replace(late, "2026-01-02", "2026-01-01", 1), webHost, webService).step()
		Expect(problems(step, first)).To(HaveExactElements(HavePrefix("spec.virtualhost.fqdn HostConflict: ")))
		Expect(problems(step, second)).To(BeEmpty())
	})

	It("can change together with another host in one step", func(ctx SpecContext) {
		other := strings.Replace(late, "Shop.Example.com", "late.example.com", 1)
		c, db := newCluster(webHost, other, webService), database(ctx)
		applyTo(ctx, db, c.step().Ops)
		c.apply(strings.Replace(webHost, "shop.example.com", "late.example.com", 1), strings.Replace(late, "Shop.Example.com", "shop.example.com", 1))
		step := c.step()
		Expect(step.Objects).To(BeEmpty(), "both have what they specify")
		applyTo(ctx, db, step.Ops)
	})

	It("that no client can request is left out", func() {
		step := newCluster(strings.Replace(webHost, "shop.example.com", "shop..example.com", 1)).step()
		Expect(problems(step, first)).To(Equal([]string{`spec.virtualhost.fqdn Invalid: "shop..example.com" is not a host name such as shop.example.com, *.example.com or *`}))
		Expect(objectIn(step, first).Made).To(BeEmpty())
	})
})

var _ = Describe("Proxies", func() {
	It("of another installation are ignored, until they belong to this one", func() {
		c := newCluster(strings.Replace(webHost, "spec:", "spec:\n  proxy: other", 1), webService)
		step := c.step()
		Expect(*objectIn(step, "GatewayHost shop/web")).To(Equal(translate.Object{Generation: 1, Ignored: true}))
		Expect(shown(step)).To(Equal([]string{"+ /proxy/edge", "+ /proxy/gatehouse"}))
		c.SetProxies(proxies("other", "edge"))
		Expect(shown(c.step())).To(ContainElements("- /proxy/gatehouse", "+ /proxy/other", "+ /proxy/other/service/shop.web"))
	})

	It("default to the first one for hosts that name none", func() {
		c := newCluster(webHost, webService)
		c.step()
		c.SetProxies(proxies("edge", "gatehouse"))
		step := c.step()
		Expect(shown(step)).To(Equal([]string{"- /proxy/gatehouse/service/shop.web", "+ /proxy/edge/service/shop.web"}))
		Expect(objectIn(step, "GatewayHost shop/web").Proxies).To(Equal([]string{"edge"}))
	})

	It("have the specified settings", func() {
		c := newCluster(webHost)
		c.step()
		list := proxies("gatehouse", "edge")
		list[0].HTTPPort = 80
		c.SetProxies(list)
		step := c.step()
		Expect(shown(step)).To(Equal([]string{"+ /proxy/gatehouse"}))
		Expect(find[*model.Proxy](step, model.ProxyKey("gatehouse")).HTTPPort).To(Equal(80))
	})
})
