package translate_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// filter returns the RouteFilter shop/NAME.
func filter(name, typeName, config string) string {
	return fmt.Sprintf("apiVersion: gateway.gatehouse.dev/v1\nkind: RouteFilter\nmetadata: {name: %s, namespace: shop}\nspec:\n  type: %s\n  routeFilterConfig: {config: %q}", name, typeName, config)
}

// login returns the RouteFilter shop/login with this client secret and these additional
// members.
func login(clientSecret, more string) string {
	return filter("login", "http_filter_oidc", `{"client_id":"gw","client_secret":`+clientSecret+`,"authorization_endpoint":"https://login.example.com/auth",`+
		`"token_endpoint":"https://login.example.com/token","redirect_uri":"/callback","cookie_secret":"hmac"`+more+`}`)
}

const (
	limited  = "  routes: [{services: [{name: web, port: 80}], filters: [{name: limit}]}, {name: open, conditions: [{prefix: /open}], services: [{name: web, port: 80}]}]"
	loggedIn = "  filters: [{name: login}]\n  routes: [{services: [{name: web, port: 80}]}]"
	hmac     = "apiVersion: v1\nkind: Secret\nmetadata: {name: hmac}\nstringData: {key: hmac key}"
	client   = "apiVersion: v1\nkind: Secret\nmetadata: {name: client}\nstringData: {key: \"its secret\\n\"}"
)

var _ = Describe("A RouteFilter", func() {
	It("becomes a filter, and is attached if GatewayHosts name it", func() {
		c := newCluster(webService, webSlice, filter("limit", "route_filter_ratelimit", `{ "descriptors": [{"remote_address": "x"}] }`))
		step := c.step()
		Expect(step.Ops).To(ContainElement(translate.Op{Key: model.FilterKey("shop.limit"), Object: &model.Filter{
			Name: "shop.limit", Type: "route_filter_ratelimit", Config: `{"descriptors":[{"remote_address":"x"}]}`,
		}}))
		Expect(*objectIn(step, "RouteFilter shop/limit")).To(Equal(translate.Object{Made: []translate.Made{{Key: model.FilterKey("shop.limit")}}}))
		c.apply(hostOf("  filters: [{name: limit}]\n" + limited))
		step = c.step()
		find[*model.ServiceFilter](step, model.ServiceFilterKey("shop.web", "shop.limit"))
		find[*model.RouteFilter](step, model.RouteFilterKey("shop.web", "root", "shop.limit"))
		Expect(problems(step, "GatewayHost shop/web")).To(BeEmpty())
		By("it is for the proxies of the hosts that name it")
		Expect(objectIn(step, "RouteFilter shop/limit").Proxies).To(Equal([]string{"gatehouse"}))
		c.apply(strings.Replace(hostOf(limited), "spec:", "spec:\n  proxy: edge", 1))
		Expect(objectIn(c.step(), "RouteFilter shop/limit").Proxies).To(Equal([]string{"edge"}))
		c.remove("GatewayHost shop/web")
		Expect(objectIn(c.step(), "RouteFilter shop/limit").Proxies).To(BeEmpty())
	})

	It("closes what names it when it is deleted, and reopens it when it comes back", func() {
		c := newCluster(webService, webSlice, filter("limit", "route_filter_ratelimit", `{"descriptors":[{"remote_address":"x"}]}`), hostOf(limited))
		s := []translate.Step{c.step()}
		open := []string{"gatehouse shop.example.com / -> shop.web.80", "gatehouse shop.example.com /open -> shop.web.80"}
		Expect(served(s...)).To(Equal(open))
		c.remove("RouteFilter shop/limit")
		s = append(s, c.step())
		Expect(served(s...)).To(Equal([]string{"gatehouse shop.example.com / -> 503", "gatehouse shop.example.com /open -> shop.web.80"}))
		Expect(problems(s[1], "GatewayHost shop/web")).To(Equal([]string{"spec.routes[0].filters[0].name RefNotFound: RouteFilter shop/limit does not exist"}))
		c.apply(filter("limit", "route_filter_ratelimit", `{"descriptors":[{"remote_address":"x"}]}`))
		Expect(served(append(s, c.step())...)).To(Equal(open))
	})

	It("is ignored if only GatewayHosts of other installations name it", func() {
		c := newCluster(webService, filter("limit", "route_filter_ratelimit", `{"descriptors":[{"remote_address":"x"}]}`))
		Expect(objectIn(c.step(), "RouteFilter shop/limit").Ignored).To(BeFalse(), "nobody names it")
		elsewhere := strings.Replace(hostOf(limited), "spec:", "spec:\n  proxy: elsewhere", 1)
		c.apply(elsewhere)
		Expect(objectIn(c.step(), "RouteFilter shop/limit").Ignored).To(BeTrue())
		c.apply(strings.Replace(hostOf(limited), "name: web, namespace", "name: ours, namespace", 1))
		Expect(objectIn(c.step(), "RouteFilter shop/limit").Ignored).To(BeFalse())
	})

	It("of another namespace is a different one", func() {
		step := newCluster(webService, webSlice, strings.Replace(filter("limit", "route_filter_ratelimit", `{"descriptors":[{"remote_address":"x"}]}`), "namespace: shop", "namespace: team-b", 1), hostOf(limited)).step()
		Expect(problems(step, "GatewayHost shop/web")).To(HaveLen(1))
	})

	It("cannot be read if the ServiceAccount may not read RouteFilters", func() {
		c := newCluster(webService, webSlice, hostOf(limited))
		c.SetUnreadable("RouteFilter", "the ServiceAccount may not list routefilters")
		Expect(problems(c.step(), "GatewayHost shop/web")).To(Equal([]string{
			"spec.routes[0].filters[0].name RefNotFound: RouteFilter shop/limit cannot be read: the ServiceAccount may not list routefilters",
		}))
		c.SetUnreadable("RouteFilter", "")
		Expect(problems(c.step(), "GatewayHost shop/web")).To(HaveExactElements(HaveSuffix("does not exist")))
	})
})

var _ = DescribeTable("A RouteFilter that cannot be read closes what names it:", func(typeName, config, path, message string) {
	step := newCluster(webService, webSlice, filter("limit", typeName, config), hostOf(limited)).step()
	Expect(problems(step, "RouteFilter shop/limit")).To(Equal([]string{path + " Invalid: " + message}))
	Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{
		"spec.routes[0].filters[0].name Invalid: RouteFilter shop/limit cannot be used: " + path + ": " + message,
	}))
	Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> 503", "gatehouse shop.example.com /open -> shop.web.80"}))
},
	Entry("not JSON", "route_filter_ratelimit", "{", "spec.routeFilterConfig.config", "is not JSON: unexpected end of JSON input"),
	Entry("not an object", "route_filter_headers", "[]", "spec.routeFilterConfig.config", "must be a JSON object"),
	Entry("an invalid field", "route_filter_headers", `{"request":{"set":{"host":"x"}}}`, "spec.routeFilterConfig.config",
		`request.set.host: "host" cannot be changed; the rewrite of a route changes path and host`),
	Entry("an unsupported type", "http_filter_accesslog", "{}", "spec.type", `"http_filter_accesslog" is not supported yet`),
	Entry("text with a reserved prefix", "route_filter_headers", `{"request":{"set":{"x-a":"sealed\u003av1:x"}}}`, "spec.routeFilterConfig.config",
		"request.set.x-a: is not a secret; write it in plain text"),
)

var _ = Describe("A login of a host", func() {
	It("names Secrets of its namespace, by their names in the store", func() {
		c := newCluster(webService, webSlice, hmac, client, login(`{"secret":"client"}`, ""), hostOf(loggedIn))
		step := c.step()
		Expect(problems(step, "RouteFilter shop/login")).To(BeEmpty())
		Expect(find[*model.Filter](step, model.FilterKey("shop.login")).Config).To(Equal(model.JSON(`{"client_id":"gw","client_secret":{"secret":"shop.client"},` +
			`"authorization_endpoint":"https://login.example.com/auth","token_endpoint":"https://login.example.com/token","redirect_uri":"/callback","cookie_secret":"shop.hmac"}`)))
		Expect(find[*model.Secret](step, model.SecretKey("shop.client"))).To(Equal(&model.Secret{Name: "shop.client", Type: "generic", Value: "its secret"}))
		Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80 behind a login"}))
	})

	It("may have an inline client secret", func() {
		step := newCluster(webService, webSlice, hmac, login(`"In The Clear"`, ""), hostOf(loggedIn)).step()
		Expect(string(find[*model.Filter](step, model.FilterKey("shop.login")).Config)).To(ContainSubstring(`"client_secret":{"secret":"shop.login_client-secret"}`))
		Expect(find[*model.Secret](step, model.SecretKey("shop.login_client-secret")).Value).To(Equal("In The Clear"))
		Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80 behind a login"}))
	})

	It("treats a client secret as the name of a Secret if one exists", func() {
		c := newCluster(webService, webSlice, hmac, login(`"client"`, ""), hostOf(loggedIn))
		Expect(find[*model.Secret](c.step(), model.SecretKey("shop.login_client-secret")).Value).To(Equal("client"))
		c.apply(client)
		step := c.step()
		Expect(string(find[*model.Filter](step, model.FilterKey("shop.login")).Config)).To(ContainSubstring(`"client_secret":{"secret":"shop.client"}`))
		Expect(shown(step)).To(ContainElements("+ /secret/shop.client", "- /secret/shop.login_client-secret"))
	})

	DescribeTable("never uses the Secret of another namespace", func(clientSecret, more string) {
		c := newCluster(webService, webSlice, hmac, login(clientSecret, more), hostOf(loggedIn), strings.Replace(tlsHost("secretName: key"), "shop", "team-b", 2))
		c.put(secret("team-b/key", "key", "the secret of others"))
		step := c.step()
		f := find[*model.Filter](step, model.FilterKey("shop.login"))
		Expect(f.Names()).NotTo(ContainElement(model.SecretKey("team-b.key")))
		Expect(string(f.Config)).NotTo(ContainSubstring(`"team-b.key"`))
	},
		Entry("by its name in the store", `"team-b.key"`, ""),
		Entry("by an object", `{"secret":"team-b.key"}`, ""),
		Entry("in another letter case", `{"SECRET":"team-b.key"}`, ""),
		Entry("by another field in another letter case", `"x"`, `,"Cookie_Secret":"team-b.key"`),
		Entry("by another spelling that JSON treats as equal", `"x"`, `,"cookie_\u017fecret":"team-b.key"`),
	)

	It("is refused with two client secrets", func() {
		step := newCluster(webService, hmac, login(`"a"`, `,"client_secret":"team-b.key"`), hostOf(loggedIn)).step()
		Expect(problems(step, "RouteFilter shop/login")).To(Equal([]string{"spec.routeFilterConfig.config Invalid: client_secret occurs more than once"}))
	})

	It("is closed when its Secret is deleted, and both objects report it", func() {
		c := newCluster(webService, webSlice, hmac, client, login(`{"secret":"client"}`, ""), hostOf(loggedIn))
		first := c.step()
		c.remove("Secret shop/hmac")
		step := c.step()
		Expect(problems(step, "RouteFilter shop/login")).To(Equal([]string{"spec.routeFilterConfig.config RefNotFound: Secret shop/hmac does not exist"}))
		Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{
			"spec.filters[0].name RefNotFound: RouteFilter shop/login cannot be used: spec.routeFilterConfig.config: Secret shop/hmac does not exist",
		}))
		Expect(served(first, step)).To(Equal([]string{"gatehouse shop.example.com / -> 503"}))
	})

	It("is for hosts, not for routes", func() {
		step := newCluster(webService, webSlice, hmac, login(`"x"`, ""), hostOf("  routes: [{services: [{name: web, port: 80}], filters: [{name: login}]}]")).step()
		Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{
			"spec.routes[0].filters[0].name Invalid: RouteFilter shop/login is of type http_filter_oidc, which is for whole hosts: name it in spec.filters",
		}))
		Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> 503"}))
	})

	DescribeTable("can use a Service", func(upstream, service string, want *model.Upstream, problem string) {
		c := newCluster(webService, webSlice, hmac, login(`"x y"`, `,"upstream":"`+upstream+`"`), hostOf(loggedIn), strings.Replace(serviceOf(service), "name: web", "name: idp", 1))
		step := c.step()
		if problem != "" {
			Expect(problems(step, "RouteFilter shop/login")).To(Equal([]string{"spec.routeFilterConfig.config " + problem}))
			Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> 503"}))
			return
		}
		Expect(problems(step, "RouteFilter shop/login")).To(BeEmpty())
		list := upstreamsOf(step)
		Expect(list[0].Name).To(HavePrefix("shop.idp." + fmt.Sprint(want.Port)))
		want.Name = list[0].Name
		Expect(list[0]).To(Equal(want))
		Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80 behind a login"}))
	},
		Entry("with one port", "idp", "ports: [{port: 8443}]", loginUpstream("idp.shop.svc", 8443, "idp.shop.svc"), ""),
		Entry("with several ports", "idp.8443", "ports: [{port: 8443}, {name: admin, port: 81}]", loginUpstream("idp.shop.svc", 8443, "idp.shop.svc"), ""),
		Entry("by the name of its port", "idp.api", "ports: [{name: api, port: 8443}, {name: admin, port: 81}]", loginUpstream("idp.shop.svc", 8443, "idp.shop.svc"), ""),
		Entry("outside the cluster", "idp", "{type: ExternalName, externalName: login.example.com}", loginUpstream("login.example.com.", 443, ""), ""),
		Entry("with several ports, none of which is named", "idp", "ports: [{port: 443}, {name: admin, port: 81}]", nil, "Invalid: Service shop/idp has more than one port: write upstream as SERVICE.PORT"),
		Entry("that does not exist", "other", "ports: [{port: 443}]", nil, "RefNotFound: Service shop/other does not exist"),
	)
})

// loginUpstream returns the upstream of an identity provider.
func loginUpstream(host string, port int, subject string) *model.Upstream {
	u := model.NewUpstream()
	u.IP, u.Port, u.Protocol, u.ValidationSubjectName = host, port, "tls", subject
	return u
}

var _ = Describe("A RouteFilter that names logs", func() {
	const log = "apiVersion: gateway.gatehouse.dev/v1\nkind: GlobalConfig\nmetadata: {name: NAME, namespace: NAMESPACE}\nspec: {type: globalconfig_accesslog, config: '{}'}"
	logOf := func(namespace, name string) string {
		return strings.NewReplacer("NAMESPACE", namespace, "NAME", name).Replace(log)
	}
	logged := hostOf("  filters: [{name: logs}]\n  routes: [{services: [{name: web, port: 80}]}]")
	config := func(step translate.Step) string {
		return string(find[*model.Filter](step, model.FilterKey("shop.logs")).Config)
	}

	It("names those of its own namespace", func() {
		c := newCluster(webService, webSlice, logged, logOf("shop", "own"), logOf("team-b", "theirs"),
			filter("logs", "route_filter_accesslog", `{"logs":["own"]}`))
		step := c.step()
		Expect(config(step)).To(Equal(`{"logs":["shop.own"]}`))
		Expect(problems(step, "RouteFilter shop/logs")).To(BeEmpty())
	})

	DescribeTable("cannot name those of another", func(name, problem string) {
		step := newCluster(webService, webSlice, logged, logOf("team-b", "theirs"), filter("logs", "route_filter_accesslog", `{"logs":["`+name+`"]}`)).step()
		Expect(problems(step, "RouteFilter shop/logs")).To(Equal([]string{"spec.routeFilterConfig.config " + problem}))
		for _, op := range step.Ops {
			if f, is := op.Object.(*model.Filter); is {
				Expect(string(f.Config)).To(Equal(`{"logs":["shop.` + name + `"]}`))
			}
		}
	},
		Entry(nil, "theirs", "RefNotFound: GlobalConfig shop/theirs does not exist"),
		Entry(nil, "team-b.theirs", "RefNotFound: GlobalConfig shop/team-b.theirs does not exist"),
		Entry(nil, "team-b/theirs", `Invalid: logs[0]: "team-b/theirs" may contain only the characters A-Z a-z 0-9 . _ -`),
	)

	It("closes nothing if a log is missing, and hears of it later", func() {
		c := newCluster(webService, webSlice, logged, filter("logs", "route_filter_accesslog", `{"logs":["own"]}`))
		step := c.step()
		Expect(problems(step, "RouteFilter shop/logs")).To(HaveLen(1))
		Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80"}))
		c.apply(logOf("shop", "own"))
		Expect(problems(c.step(), "RouteFilter shop/logs")).To(BeEmpty())
	})
})
