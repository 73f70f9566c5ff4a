package precheck_test

import (
	"context"
	"errors"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ = Describe("A warning about a filter that does not fit where it is", func() {
	warned := func(stored []model.Object, change func(store.Writer) error) (list []string) {
		GinkgoHelper()
		givenUp := errors.New("given up")
		_, failed := db.Write(context.Background(), store.Origin{Actor: "test"}, func(w store.Writer) error {
			Expect(insert(stored...)(w)).To(Succeed())
			before := w.Count().Total()
			Expect(change(w)).To(Succeed())
			var err error
			list, err = precheck.Rules{}.Warnings(w, behind(w, before))
			Expect(err).NotTo(HaveOccurred())
			return givenUp
		})
		Expect(failed).To(BeIdenticalTo(givenUp))
		return list
	}
	upstream := func(name, ip string) *model.Upstream {
		u := model.NewUpstream()
		u.Name, u.IP, u.Port = name, ip, 80
		return u
	}
	gw := model.NewProxy()
	gw.Name = "gw"
	of := func(name, kind, config string) *model.Filter {
		return &model.Filter{Name: name, Type: kind, Config: model.JSON(config)}
	}
	on := func(filter string) *model.ServiceFilter { return &model.ServiceFilter{Service: "shop", Filter: filter} }
	onRoot := func(filter string) *model.RouteFilter {
		return &model.RouteFilter{Service: "shop", Route: "root", Filter: filter}
	}
	to := func(upstream string) *model.RouteUpstream {
		return &model.RouteUpstream{Service: "shop", Route: "root", Upstream: upstream}
	}
	world := []model.Object{
		upstream("blue", "192.0.2.1"), &model.Service{Name: "shop", FQDN: "*", HTTPS: model.HTTPSBoth}, &model.Route{Service: "shop", Name: "root", Prefix: "/"},
		to("blue"), gw, &model.ProxyService{Proxy: "gw", Service: "shop"},
	}
	with := func(more ...model.Object) []model.Object { return append(append([]model.Object{}, world...), more...) }
	health := &model.Route{Service: "shop", Name: "health", Prefix: "/health", Config: model.RouteConfig{Public: true}}

	rules := of("rules", model.FilterRBAC, `{"allow":[{"methods":["GET"]}],"deny":[{"claims":[{"claim":"groups","values":["guests"]}]}]}`)
	plain := of("plain", model.FilterRBAC, `{"allow":[{"methods":["GET"]}]}`)
	tokens := of("tokens", model.FilterJWT, `{"issuer":"https://idp.test","audiences":["shop"],"jwks_uri":"https://idp.test/keys"}`)
	users := of("users", model.FilterBasicAuth, `{"users":[{"name":"ann","password":"correct-horse-battery"}]}`)
	either := of("either", model.FilterAnyOf, `{"basicauth":{"users":[{"name":"ann","password":"correct-horse-battery"}]},"jwt":`+string(tokens.Config)+`}`)
	each := of("each", model.FilterRateLimit, `{"per":"claim:sub","limit":"5/day"}`)
	limit := of("limit", model.FilterRateLimit, `{"per":"client","limit":"5/day"}`)
	client := of("client", model.FilterRateLimit, `{"per":"api_client","limit":"5/day"}`)
	keys := of("keys", model.FilterAPIKey, `{"keys":"partners"}`)
	accepts := of("accepts", model.FilterAnyOf, `{"basicauth":{"users":[{"name":"ann","password":"correct-horse-battery"}]},"apikey":{"keys":"partners"}}`)
	callers := of("callers", model.FilterRBAC, `{"allow":[{"methods":["GET"]},{"clients":["partners"]}]}`)
	spent := of("spent", model.FilterRateLimit, `{"per":"consumer","limit":"5/day"}`)
	members := of("members", model.FilterRBAC, `{"allow":[{"groups":["gold"]}]}`)
	known := of("known", model.FilterConsumer, `{}`)
	partners := &model.KeySet{Name: "partners"}
	logs, audit := &model.GlobalConfig{Name: "main", Type: model.GlobalConfigAccessLog, Config: `{}`}, &model.GlobalConfig{Name: "audit", Type: model.GlobalConfigAccessLog, Config: `{}`}
	// unverified is a login whose id_token is not verified.
	unverified := of("staff", model.FilterOIDC, `{"client_id":"a","client_secret":{"secret":"nowhere"},"cookie_secret":"nowhere",
		"authorization_endpoint":"https://idp.test/a","token_endpoint":"https://idp.test/t","redirect_uri":"/cb"}`)
	everywhere := &model.GlobalConfig{Name: "everywhere", Type: model.GlobalConfigOAuth, Config: `{"openid_connect":{"provider":{"issuer":"https://idp.test"},
		"client_id":"a","client_secret":"nowhere","hmac_secret":"nowhere","redirect_url":"/cb","redirect_path_matcher":"/cb"}}`}

	const (
		verifies = " verifies claims (a http_filter_jwt, or a login with issuer or jwks_uri): "
		noClaim  = "compares claims, but nothing on /service/shop/route/root" + verifies +
			"no request has any there, so no rule with claims applies, neither in allow nor in deny"
		noUser   = "counts by a claim, but nothing on /service/shop/route/root" + verifies + "it counts no request there"
		noCaller = "compares clients, but nothing on /service/shop/route/root reads API keys (a http_filter_apikey, or a http_filter_anyof with apikey): " +
			"no request has a client there, so no rule with clients applies, neither in allow nor in deny"
		noClient   = "counts by the client of an API key, but no http_filter_apikey applies to /service/shop/route/root: it counts no request there"
		noConsumer = "counts by the consumer, but no http_filter_consumer applies to /service/shop/route/root: it counts no request there"
		noMember   = "compares consumers, but no http_filter_consumer on /service/shop/route/root finds any: " +
			"no rule with consumers or groups applies there, neither in allow nor in deny"
		notForwarded = "limits nothing here: only requests that go to an upstream are counted, and these are answered by the gateway"
	)

	DescribeTable("is given for", func(stored []model.Object, change func(store.Writer) error, want ...string) {
		for _, stored := range [][]model.Object{stored, shortened(stored)} {
			told := slices.DeleteFunc(warned(stored, change), func(text string) bool { return !strings.HasPrefix(text, "/service/") }) // of logins
			Expect(told).To(HaveExactElements(want))
		}
	},
		Entry("claims that nothing verifies", with(rules), insert(on("rules")), "/service/shop/filter/rules "+noClaim),
		Entry("claims that are added to a rule", with(plain, on("plain")), replace(of("plain", model.FilterRBAC, string(rules.Config))), "/service/shop/filter/plain "+noClaim),
		Entry("claims on a route, and a token on another", with(rules, tokens, health, &model.RouteFilter{Service: "shop", Route: "health", Filter: "tokens"}), insert(onRoot("rules")),
			"/service/shop/route/root/filter/rules "+noClaim),
		Entry("claims on a public route", with(rules, tokens, on("tokens"), health), insert(&model.RouteFilter{Service: "shop", Route: "health", Filter: "rules"}),
			"/service/shop/route/health/filter/rules compares claims, but nothing on /service/shop/route/health"+noClaim[len("compares claims, but nothing on /service/shop/route/root"):]),
		Entry("claims with a login that does not verify them", with(rules, unverified, on("staff")), insert(on("rules")), "/service/shop/filter/rules "+noClaim),
		Entry("claims whose token is removed", with(rules, tokens, on("rules"), onRoot("rules"), on("tokens")), remove(on("tokens").Key()),
			"/service/shop/filter/rules "+noClaim, "/service/shop/route/root/filter/rules "+noClaim),
		Entry("claims with a login on other proxies only", with(rules, everywhere, &model.Proxy{Name: "edge"}, &model.ProxyGlobalConfig{Proxy: "edge", GlobalConfig: "everywhere"}), insert(on("rules")),
			"/service/shop/filter/rules "+noClaim),
		Entry("but not for rules without claims", with(plain), insert(on("plain"))),
		Entry("but not for claims with a token", with(rules, tokens, on("tokens"), health), insert(on("rules"))),
		Entry("but not for claims with a token of the route", with(rules, tokens, onRoot("tokens")), insert(on("rules"))),
		Entry("claims with passwords instead of the login of the proxy", with(rules, everywhere, users, on("users")), insert(on("rules")), "/service/shop/filter/rules "+noClaim),
		Entry("claims whose token among several credentials is removed", with(rules, either, on("rules"), on("either")), remove(on("either").Key()), "/service/shop/filter/rules "+noClaim),
		Entry("but not for claims with a token among several credentials", with(rules, either, on("either")), insert(on("rules"))),
		Entry("but not for claims with a login", with(rules, login("/"), on("staff")), insert(on("rules"))),
		Entry("but not for claims with a login of the proxy", with(rules, everywhere), insert(on("rules"))),
		Entry("but not before a proxy serves it, which may have a login", append(with(rules, everywhere)[:5:5], rules, everywhere), insert(on("rules"))),
		Entry("a limit by a claim that nothing verifies", with(each), insert(on("each")), "/service/shop/filter/each "+noUser),
		Entry("a limit by claim whose token is removed", with(each, tokens, on("each"), onRoot("tokens")), remove(onRoot("tokens").Key()), "/service/shop/filter/each "+noUser),
		Entry("but not for a limit by claim with a token", with(each, tokens, onRoot("tokens")), insert(onRoot("each"))),
		Entry("clients where nothing reads keys", with(callers, tokens, on("tokens")), insert(on("callers")), "/service/shop/filter/callers "+noCaller),
		Entry("clients whose keys are removed", with(callers, partners, keys, on("callers"), on("keys")), remove(on("keys").Key()), "/service/shop/filter/callers "+noCaller),
		Entry("clients with credentials of which none is a key", with(callers, either, onRoot("either")), insert(on("callers")), "/service/shop/filter/callers "+noCaller),
		Entry("but not for clients where a key is required", with(callers, partners, keys, onRoot("keys")), insert(on("callers"))),
		Entry("but not for clients where a key is accepted", with(callers, partners, accepts, on("accepts")), insert(onRoot("callers"))),
		Entry("a limit by client without keys", with(client, tokens, on("tokens")), insert(onRoot("client")), "/service/shop/route/root/filter/client "+noClient),
		Entry("a limit by consumer that nothing finds", with(spent, partners, keys, on("keys")), insert(on("spent")), "/service/shop/filter/spent "+noConsumer),
		Entry("but not for one that its route finds", with(spent, known, onRoot("known")), insert(on("spent"))),
		Entry("groups that nothing finds", with(members), insert(onRoot("members")), "/service/shop/route/root/filter/members "+noMember),
		Entry("groups that are not found any more", with(members, known, on("members"), on("known")), remove(on("known").Key()), "/service/shop/filter/members "+noMember),
		Entry("but not for groups that the service finds", with(members, known, on("known")), insert(onRoot("members"))),
		Entry("a limit by client whose keys are removed", with(client, partners, keys, on("client"), on("keys")), remove(on("keys").Key()), "/service/shop/filter/client "+noClient),
		Entry("but not for a limit by client with keys", with(client, partners, keys, on("keys")), insert(onRoot("client"))),
		Entry("but not for a limit by client with keys on the route", with(client, partners, keys, onRoot("keys")), insert(on("client"))),
		Entry("a log that its proxy does not have", with(logs, audit, of("to", model.FilterAccessLog, `{"logs":["main","audti","limits"]}`)), insert(on("to")),
			`/service/shop/filter/to names the log audti, and no globalconfig_accesslog of proxy gw has that name; the nearest is "audit"`),
		Entry("a log of another proxy", with(logs, audit, &model.Proxy{Name: "edge"}, &model.ProxyGlobalConfig{Proxy: "edge", GlobalConfig: "audit"}), insert(of("to", model.FilterAccessLog, `{"logs":["audit"]}`), onRoot("to")),
			"/service/shop/route/root/filter/to names the log audit, and no globalconfig_accesslog of proxy gw has that name"),
		Entry("but not for the logs of its proxy, and not for none", with(logs, audit, of("none", model.FilterAccessLog, `{"logs":[]}`), of("to", model.FilterAccessLog, `{"logs":["audit","main"]}`)), insert(on("to"), onRoot("none"))),
		Entry("a limit on a route that redirects", with(limit, of("moved", model.FilterRedirect, `{"path":"/new"}`), onRoot("moved")), insert(onRoot("limit")), "/service/shop/route/root/filter/limit "+notForwarded),
		Entry("a limit on a route of a service that redirects", with(limit, of("moved", model.FilterRedirect, `{"path":"/new"}`), on("moved")), insert(on("limit")), "/service/shop/filter/limit "+notForwarded),
	)
})

// shortened returns objects with the short names of their types.
func shortened(objects []model.Object) []model.Object {
	list := slices.Clone(objects)
	for i, obj := range list {
		switch o := obj.(type) {
		case *model.Filter:
			f := *o
			f.Type = model.ShortType(f.Type)
			list[i] = &f
		case *model.GlobalConfig:
			g := *o
			g.Type = model.ShortType(g.Type)
			list[i] = &g
		}
	}
	return list
}
