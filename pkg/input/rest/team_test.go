package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// makeEditor makes the token of a team, which has its name as its tag.
func (a *api) makeEditor(name, more string) string {
	GinkgoHelper()
	got := a.send("POST", "/token", adminToken, "Token_name="+name+"-ci&Token_role=editor&Token_tags="+name+more)
	Expect(got.status).To(Equal(201), got.body)
	_, token, _ := strings.Cut(got.body, `"token":"`)
	return strings.TrimSuffix(token, `"}`)
}

// teams is an API with the token of team a, and what an admin, team a and team b have.
func teams(more string, options ...func(*rest.Options)) (a *api, editor string) {
	GinkgoHelper()
	a = startAPIThatFails(append([]func(*rest.Options){guarded}, options...)...)
	editor = a.makeEditor("a", "&Token_hosts=*.a.test,a.test&Token_ports=5432"+more)
	for _, call := range [][2]string{
		{"/proxy", "Name=edge&tags=shared"},
		{"/proxy", "Name=inner"},
		{"/upstream", "Upstream_name=a-blue&Upstream_ip=10.0.0.1&Upstream_port=80&tags=a"},
		{"/upstream", "Upstream_name=b-blue&Upstream_ip=10.0.0.2&Upstream_port=80&tags=b"},
		{"/upstream", "Upstream_name=all-blue&Upstream_ip=10.0.0.3&Upstream_port=80&tags=b,shared"},
		{"/secret", "Secret_name=b-secret&Secret_value=v&tags=b"},
		{"/secret", "Secret_name=a-secret&Secret_value=v&tags=a"},
		{"/keyset", "Keyset_name=b-keys&tags=b"},
		{"/keyset", "Keyset_name=a-keys&tags=a"},
		{"/keyset", "Keyset_name=all-keys&tags=b,shared"},
		{"/filter", "Filter_name=a-keys&Filter_type=http_filter_apikey&tags=a&Filter_config=" + url.QueryEscape(`{"keys":"a-keys"}`)},
		{"/filter", "Filter_name=b-keys&Filter_type=http_filter_apikey&tags=b&Filter_config=" + url.QueryEscape(`{"keys":"b-keys"}`)},
		{"/globalconfig", "globalconfig_name=g&globalconfig_type=globalconfig_connections&tags=a&config=" + url.QueryEscape(`{"max_connections":9}`)},
		{"/globalconfig", "globalconfig_name=audit&globalconfig_type=globalconfig_accesslog&config=" + url.QueryEscape(`{"upstream":"b-blue"}`)},
		{"/service", "Service_Name=a-shop&fqdn=shop.a.test&tags=a"},
		{"/service/a-shop/route", "Route_Name=root&Route_prefix=/"},
		{"/service", "Service_Name=b-shop&fqdn=shop.b.test&tags=b"},
		{"/service/b-shop/route", "Route_Name=root&Route_prefix=/&tags=a"},
		{"/service/b-shop/route/root/upstream/b-blue", ""},
		{"/service/b-shop/filter/b-keys", ""},
		{"/proxy/edge/service/b-shop", ""},
		{"/proxy/inner/globalconfig/g", ""},
	} {
		got := a.send("POST", call[0], adminToken, call[1])
		Expect(got.status).To(Equal(201), "%s %s", call[0], got.body)
	}
	return a, editor
}

var _ = Describe("An editor", func() {
	It("may call what changes the configuration, and nothing else that is no read", func() {
		a, editor := teams("")
		handler := rest.New(rest.Options{Store: a.store, Tokens: a.store.(store.Tokens), ProxyTokens: a.store.(store.ProxyTokens)})
		var closed []string
		changes := 0
		for _, r := range rest.Routes(handler) {
			if slices.Contains([]string{http.MethodGet, http.MethodHead}, r.Method) {
				continue
			}
			got := a.send(r.Method, routePath(r.Path), editor, "")
			if got.status == 403 && strings.Contains(got.body, "has the role editor, which may read, and change objects with the tags of the token") {
				closed = append(closed, r.Method+" "+r.Path)
				continue
			}
			// It reaches the handler, which has nothing to change; what it writes is checked in the transaction.
			Expect(got.status).To(Or(Equal(400), Equal(403), Equal(404), Equal(415), Equal(200)), "%s %s: %s", r.Method, r.Path, got.body)
			changes++
		}
		slices.Sort(closed)
		Expect(closed).To(Equal([]string{
			"DELETE /proxy/:proxy/token/:token", "DELETE /ratelimit/token/:token", "DELETE /token/:token",
			"POST /certificate/:host/renew", "POST /proxy/:proxy/token", "POST /ratelimit/token", "POST /service/:service/login/test", "POST /token",
		}))
		Expect(changes).To(BeNumerically(">", 40))
		Expect(a.revision()).To(Equal(int64(22)))
	})

	It("exempts a route from filters of its service, and does not change one that an admin exempted from those of a proxy", func() {
		a, editor := teams("")
		const root = "/service/a-shop/route/root"
		exempt := func(token, names string) int {
			return a.send("PATCH", root, token, "Route_config="+url.QueryEscape(`{"exempt":{`+names+`}}`)).status
		}
		Expect(exempt(editor, `"service":["a-keys","shared-or-not"]`)).To(Equal(200))
		Expect(exempt(adminToken, `"proxy":["office"]`)).To(Equal(200))
		Expect(a.send("PATCH", root, editor, "Route_prefix=/other").status).To(Equal(403), "more requests would be exempt")
		Expect(exempt(editor, `"service":["a-keys"]`)).To(Equal(200), "which takes the exemption away")
		Expect(a.send("PATCH", root, editor, "Route_prefix=/wide").status).To(Equal(200))
	})

	It("reads what a viewer reads", func() {
		a, editor := teams("")
		Expect(a.send("GET", "/upstream/b-blue", editor, "").status).To(Equal(200))
		Expect(a.send("GET", "/config", editor, "").status).To(Equal(200))
		Expect(a.send("GET", "/config?secrets=sealed", editor, "").status).To(Equal(403))
		Expect(a.send("GET", "/secret/b-secret", editor, "").body).NotTo(ContainSubstring("value"))
	})

	It("prunes with its own tag only", func() {
		a, editor := teams("")
		for _, query := range []string{"", "&tag=b", "&tag=shared"} {
			a.send("PUT", "/config?prune=true"+query, editor, "version: 1\n", "Content-Type", "application/yaml").expectProblem(403, refused(403, "forbidden",
				"The role does not allow this", "the token may delete only what has its tags: combine prune with tag=a", "/config"))
		}
		got := a.send("PUT", "/config?prune=true&tag=a", editor, "version: 1\nupstreams: [{upstream_name: a-blue, upstream_ip: 10.0.0.1, upstream_port: 80, tags: [a]}]\n", "Content-Type", "application/yaml")
		Expect(got.status).To(Equal(200), got.body)
		Expect(a.send("GET", "/service/a-shop", editor, "").status).To(Equal(404))
		Expect(a.send("GET", "/globalconfig/g", editor, "").status).To(Equal(200), "it has the tag, and is the admins'")
		Expect(a.send("GET", "/service/b-shop", editor, "").status).To(Equal(200))
	})

	DescribeTable("changes what is its own:", func(method, path, fields string) {
		a, editor := teams("")
		got := a.send(method, path, editor, fields)
		Expect(got.status).To(Or(Equal(200), Equal(201)), got.body)
		Expect(a.revision()).To(Equal(int64(23)))
	},
		Entry(nil, "POST", "/service", "Service_Name=x&fqdn=*.a.test&tags=a,more"),
		Entry(nil, "POST", "/service", "Service_Name=x&fqdn=A.test&tags=a"),
		Entry(nil, "POST", "/service", "Service_Name=x&fqdn=*&Mode=tcp&Port=5432&tags=a"),
		Entry(nil, "PUT", "/upstream/x", "Upstream_ip=10.0.0.9&Upstream_port=80&tags=a"),
		Entry(nil, "PATCH", "/upstream/a-blue", "Upstream_port=81"),
		Entry(nil, "PATCH", "/upstream/a-blue", "tags=a,shared"),
		Entry(nil, "DELETE", "/upstream/a-blue", ""),
		Entry(nil, "POST", "/service/a-shop/route", "Route_Name=x&Route_prefix=/x"),
		Entry(nil, "DELETE", "/service/a-shop/route/root", ""),
		Entry(nil, "DELETE", "/service/a-shop", ""),
		Entry(nil, "POST", "/service/a-shop/route/root/upstream/a-blue", ""),
		Entry(nil, "POST", "/service/a-shop/route/root/upstream/all-blue", ""),
		Entry(nil, "POST", "/service/a-shop/filter/a-keys", ""),
		Entry(nil, "POST", "/service/a-shop/secret/a-secret", ""),
		Entry(nil, "POST", "/proxy/edge/service/a-shop", ""),
		Entry(nil, "POST", "/keyset/a-keys/key", "Key_name=x"),
		Entry(nil, "POST", "/service/deepcopy/a-shop/x", "fqdn=x.a.test"),
		Entry(nil, "POST", "/upstream/copy/b-blue/x", "tags=a"),
		Entry(nil, "PATCH", "/secret/a-secret", "Secret_value=x"),
		Entry(nil, "POST", "/consumer", "Consumer_name=x&tags=a&Consumer_groups=gold@a&Consumer_credentials="+url.QueryEscape(`{"keys":["a-keys/x"],"users":["a-keys/ann"]}`)),
		Entry(nil, "POST", "/consumer", "Consumer_name=x&tags=a"),
	)

	DescribeTable("is refused, and told which object lacks which right:", func(method, path, fields string, errs ...string) {
		a, editor := teams("")
		for _, query := range []string{"", "?dry_run=true"} {
			got := a.send(method, path+query, editor, fields)
			Expect(got.status).To(Equal(403), got.body)
			for i := 0; i < len(errs); i += 2 {
				Expect(got.body).To(ContainSubstring(`{"field":"` + errs[i] + `","message":"` + errs[i+1] + `"}`))
			}
			Expect(strings.Count(got.body, `{"field"`)).To(Equal(len(errs)/2), got.body)
		}
		Expect(a.revision()).To(Equal(int64(22)))
	},
		Entry(nil, "POST", "/service", "Service_Name=x&fqdn=x.a.test", "/service/x", "needs the tag a"),
		Entry(nil, "POST", "/service", "Service_Name=x&fqdn=x.b.test&tags=a", "/service/x", `host \"x.b.test\" is not within the token's Token_hosts`),
		Entry(nil, "POST", "/service", "Service_Name=x&fqdn=*&tags=a", "/service/x", `host \"*\" is not within the token's Token_hosts`),
		Entry(nil, "POST", "/service", "Service_Name=x&fqdn=*.test&tags=a", "/service/x", `host \"*.test\" is not within the token's Token_hosts`),
		Entry(nil, "POST", "/service", "Service_Name=x&fqdn=xa.test&tags=a", "/service/x", `host \"xa.test\" is not within the token's Token_hosts`),
		Entry(nil, "PATCH", "/service/a-shop", "fqdn=shop.b.test", "/service/a-shop", `host \"shop.b.test\" is not within the token's Token_hosts`),
		Entry(nil, "POST", "/service", "Service_Name=x&fqdn=*&Mode=udp&Port=53&tags=a", "/service/x", "port 53 is not one of the token's Token_ports"),
		Entry(nil, "POST", "/service", "Service_Name=x&fqdn=x.a.test&Mode=tls&Port=53&tags=a", "/service/x", "port 53 is not one of the token's Token_ports"),
		Entry(nil, "PATCH", "/service/a-shop", "Public=true", "/service/a-shop", "only an admin may exempt a service from the login of its proxy (Public)"),
		Entry(nil, "PATCH", "/service/a-shop", "Exempt_filters=office", "/service/a-shop", "only an admin may exempt a service from a filter of its proxy (Exempt_filters: office)"),
		Entry("exempts a route", "PATCH", "/service/a-shop/route/root", "Route_config="+url.QueryEscape(`{"exempt":{"service":["a-keys"],"proxy":["office"]}}`), "/service/a-shop/route/root",
			"only an admin may write a route that is exempt from a filter of its proxy (exempt.proxy: office)"),
		Entry(nil, "PATCH", "/upstream/b-blue", "Upstream_port=81", "/upstream/b-blue", "does not have the tag a"),
		Entry("takes over", "PATCH", "/upstream/b-blue", "tags=a,b", "/upstream/b-blue", "does not have the tag a"),
		Entry("replaces", "PUT", "/upstream/b-blue", "Upstream_ip=10.0.0.9&Upstream_port=80&tags=a", "/upstream/b-blue", "does not have the tag a"),
		Entry("shared is to use", "PATCH", "/upstream/all-blue", "Upstream_port=81", "/upstream/all-blue", "does not have the tag a"),
		Entry("gives away", "PATCH", "/upstream/a-blue", "tags=b", "/upstream/a-blue", "must keep the tag a"),
		Entry(nil, "DELETE", "/upstream/all-blue", "", "/upstream/all-blue", "does not have the tag a"),
		Entry(nil, "DELETE", "/secret/b-secret", "", "/secret/b-secret", "does not have the tag a"),
		Entry("tag of the route", "PATCH", "/service/b-shop/route/root", "Route_prefix=/x", "/service/b-shop/route/root", "/service/b-shop does not have the tag of the token"),
		Entry(nil, "POST", "/service/b-shop/route", "Route_Name=x&Route_prefix=/&tags=a", "/service/b-shop/route/x", "/service/b-shop does not have the tag of the token"),
		Entry(nil, "DELETE", "/service/b-shop/route/root/upstream/b-blue", "", "/service/b-shop/route/root/upstream/b-blue", "/service/b-shop does not have the tag of the token"),
		Entry(nil, "POST", "/service/b-shop/route/root/upstream/a-blue", "", "/service/b-shop/route/root/upstream/a-blue", "/service/b-shop does not have the tag of the token"),
		Entry(nil, "POST", "/service/a-shop/route/root/upstream/b-blue", "", "/service/a-shop/route/root/upstream/b-blue", "/upstream/b-blue is neither the team's own nor has the tag shared"),
		Entry(nil, "POST", "/service/a-shop/filter/b-keys", "", "/service/a-shop/filter/b-keys", "/filter/b-keys is neither the team's own nor has the tag shared"),
		Entry(nil, "POST", "/service/a-shop/secret/b-secret", "", "/service/a-shop/secret/b-secret", "/secret/b-secret is neither the team's own nor has the tag shared"),
		Entry(nil, "DELETE", "/service/b-shop/filter/b-keys", "", "/service/b-shop/filter/b-keys", "/service/b-shop does not have the tag of the token"),
		Entry(nil, "POST", "/keyset/b-keys/key", "Key_name=x", "/keyset/b-keys/key/x", "/keyset/b-keys does not have the tag of the token"),
		Entry("a part of what is shared", "POST", "/keyset/all-keys/key", "Key_name=x", "/keyset/all-keys/key/x", "/keyset/all-keys does not have the tag of the token"),
		Entry("names a key set", "PATCH", "/filter/a-keys", "Filter_config="+url.QueryEscape(`{"keys":"b-keys"}`), "/filter/a-keys", "/keyset/b-keys is neither the team's own nor has the tag shared"),
		Entry("names a secret", "PATCH", "/service/a-shop", "Client_validation_cacertificate=b-secret", "/service/a-shop", "/secret/b-secret is neither the team's own nor has the tag shared"),
		Entry("names a log", "POST", "/filter", "Filter_name=x&tags=a&Filter_type=route_filter_accesslog&Filter_config="+url.QueryEscape(`{"logs":["audit","nope"]}`),
			"/filter/x", "/globalconfig/audit is neither the team's own nor has the tag shared",
			"/filter/x", "/globalconfig/nope does not exist, and another team may create it"),
		Entry(nil, "POST", "/proxy/inner/service/a-shop", "", "/proxy/inner/service/a-shop", "/proxy/inner is neither the team's own nor has the tag shared"),
		Entry(nil, "DELETE", "/proxy/edge/service/b-shop", "", "/proxy/edge/service/b-shop", "/service/b-shop does not have the tag of the token"),
		Entry(nil, "POST", "/consumer", "Consumer_name=x", "/consumer/x", "needs the tag a"),
		Entry("joins the groups of others", "POST", "/consumer", "Consumer_name=x&tags=a&Consumer_groups=admins,gold@b,gold@ab,a", "/consumer/x", "group a does not end in @ and a tag of the token, such as gold@a",
			"/consumer/x", "group admins does not end in @ and a tag of the token, such as gold@a",
			"/consumer/x", "group gold@ab does not end in @ and a tag of the token, such as gold@a",
			"/consumer/x", "group gold@b does not end in @ and a tag of the token, such as gold@a"),
		Entry("takes credentials of others", "POST", "/consumer", "Consumer_name=x&tags=a&Consumer_credentials="+url.QueryEscape(`{"keys":["b-keys/k","all-keys/k","a-keys/k","later/k"],"users":["b-keys/ann"]}`),
			"/consumer/x", "/filter/b-keys does not have the tag of the token, and nor do its credentials",
			"/consumer/x", "/keyset/all-keys does not have the tag of the token, and nor do its credentials",
			"/consumer/x", "/keyset/b-keys does not have the tag of the token, and nor do its credentials",
			"/consumer/x", "/keyset/later does not exist, and another team may create it"),
		Entry("takes a subject", "POST", "/consumer", "Consumer_name=x&tags=a&Consumer_credentials="+url.QueryEscape(`{"tokens":[{"issuer":"https://i.test","subject":"mallory"}]}`),
			"/consumer/x", "only an admin may give a consumer a token or a certificate: their issuers are no team's"),
		Entry("takes a certificate", "POST", "/consumer", "Consumer_name=x&tags=a&Consumer_credentials="+url.QueryEscape(`{"certificates":[{"dns":"a.test"}]}`),
			"/consumer/x", "only an admin may give a consumer a token or a certificate: their issuers are no team's"),
		Entry(nil, "POST", "/proxy", "Name=x&tags=a", "/proxy/x", "only an admin may change this: it affects others too"),
		Entry(nil, "PATCH", "/proxy/edge", "Http_port=81", "/proxy/edge", "only an admin may change this: it affects others too"),
		Entry(nil, "DELETE", "/proxy/inner", "", "/proxy/inner", "only an admin may change this: it affects others too",
			"/proxy/inner/globalconfig/g", "only an admin may change this: it affects others too"),
		Entry(nil, "PATCH", "/globalconfig/g", "tags=a,b", "/globalconfig/g", "only an admin may change this: it affects others too"),
		Entry(nil, "POST", "/proxy/edge/globalconfig/g", "", "/proxy/edge/globalconfig/g", "only an admin may change this: it affects others too"),
		Entry("detached, it applies everywhere", "DELETE", "/proxy/inner/globalconfig/g", "", "/proxy/inner/globalconfig/g", "only an admin may change this: it affects others too"),
		Entry(nil, "POST", "/service/deepcopy/b-shop/x", "fqdn=x.a.test", "/service/x", "needs the tag a",
			"/service/x/route/root", "/service/x does not have the tag of the token",
			"/service/x/route/root/upstream/b-blue", "/service/x does not have the tag of the token",
			"/service/x/route/root/upstream/b-blue", "/upstream/b-blue is neither the team's own nor has the tag shared",
			"/service/x/filter/b-keys", "/service/x does not have the tag of the token",
			"/service/x/filter/b-keys", "/filter/b-keys is neither the team's own nor has the tag shared"),
		Entry(nil, "POST", "/service/copyroute/b-shop/a-shop/route/root", "Route_Name=x", "/service/a-shop/route/x/upstream/b-blue", "/upstream/b-blue is neither the team's own nor has the tag shared"),
	)
})

var _ = Describe("The rights of a team", func() {
	team := store.Team{Tags: []string{"a"}, Hosts: []string{"*"}}
	// refusals are of an object that is the team's and whose names belong to nobody.
	refusals := func(a *api, obj model.Object) (found []string) {
		if tagged, ok := obj.(model.Tagged); ok {
			*tagged.TagList() = model.Tags{"a"}
		}
		err := a.store.Read(context.Background(), func(r store.Reader) error {
			return store.CheckTeam(r, team, store.ChangesOf([]store.Written{{Key: obj.Key(), After: obj}}))
		})
		if refused, ok := errors.AsType[*model.Error](err); ok {
			for _, e := range refused.Fields {
				found = append(found, e.Message)
			}
		}
		return found
	}

	It("are needed for every field that names an object", func() {
		a, fields := startAPI(guarded), 0
		for _, obj := range []model.Object{model.ServiceKey("x").New(), model.UpstreamKey("x").New(), model.ProxyKey("x").New(), model.RouteKey("x", "x").New(), model.SecretKey("x").New(), model.KeySetKey("x").New(), model.APIKeyKey("x", "x").New()} {
			v := reflect.ValueOf(obj).Elem()
			for i := range v.NumField() {
				if v.Field(i).Kind() != reflect.String || v.Type().Field(i).Name == "Name" {
					continue
				}
				before := v.Field(i).String()
				v.Field(i).SetString("foreign")
				for _, key := range model.Uses(obj) {
					fields++
					Expect(refusals(a, obj)).To(ContainElement(HavePrefix(key.Path()+" ")), "%s.%s", obj.Key().Kind, v.Type().Field(i).Name)
				}
				v.Field(i).SetString(before)
			}
		}
		Expect(fields).To(Equal(3)) // authorities of clients, authorities and certificate of an upstream
	})

	It("are needed for every name in the configuration of a filter", func() {
		a, seen := startAPI(guarded), map[string]bool{}
		cases, err := filepath.Glob("../../xds/pipeline/testdata/cases/*/in.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(len(cases)).To(BeNumerically(">", 50))
		for _, file := range cases {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			var doc struct {
				Filter []struct {
					Type   string `yaml:"filter_type"`
					Config any    `yaml:"filter_config"`
				}
			}
			Expect(yaml.Unmarshal(text, &doc)).To(Succeed(), file)
			for _, filter := range doc.Filter {
				config, err := json.Marshal(filter.Config)
				Expect(err).NotTo(HaveOccurred())
				f := &model.Filter{Name: "x", Type: filter.Type, Config: model.JSON(config)}
				var names []string
				_, err = f.MapNames(func(_, name string, kind model.Kind) string {
					names = append(names, model.NewKey(kind, name).Path())
					return name
				})
				Expect(err).NotTo(HaveOccurred())
				for _, name := range names {
					seen[filter.Type] = true
					Expect(refusals(a, f)).To(ContainElement(HavePrefix(name+" ")), "%s %s", file, filter.Type)
				}
			}
		}
		Expect(slices.Sorted(maps.Keys(seen))).To(Equal([]string{
			"http_filter_anyof", "http_filter_apikey", "http_filter_basicauth", "http_filter_extauthz", "http_filter_extproc",
			"http_filter_jwt", "http_filter_lua", "http_filter_oidc", "route_filter_accesslog", "route_filter_canary", "route_filter_headers",
			"route_filter_mirror", "vh_filter_ipaccess", "vh_filter_maintenance", "vh_filter_rbac",
		}))
	})

	It("end at a number of objects, with their routes and keys", func() {
		a, _ := teams("")
		editor := a.makeEditor("c", "&Token_hosts=*&Token_max_objects=3")
		for i, call := range [][2]string{
			{"/upstream", "Upstream_name=c-1&Upstream_ip=10.0.0.1&Upstream_port=80&tags=c"}, {"/service", "Service_Name=c-2&fqdn=c.test&tags=c"},
			{"/service/c-2/route", "Route_Name=c-3&Route_prefix=/"},
			{"/service/c-2/route", "Route_Name=c-4&Route_prefix=/x"}, {"/keyset", "Keyset_name=c-5&tags=c"},
		} {
			got := a.send("POST", call[0], editor, call[1])
			if i < 3 {
				Expect(got.status).To(Equal(201), got.body)
				continue
			}
			got.expectProblem(403, refused(403, "forbidden", "The role does not allow this",
				"the team may have 3 objects (Token_max_objects), and this would make more; delete some first, or ask an admin for a token with a higher number", call[0]))
		}
		Expect(a.send("PATCH", "/upstream/c-1", editor, "Upstream_port=81").status).To(Equal(200))
		Expect(a.send("POST", "/service/c-2/route/c-3/upstream/c-1", editor, "").status).To(Equal(201), "a link is no object")
		Expect(a.send("DELETE", "/service/c-2/route/c-3", editor, "").status).To(Equal(200))
		Expect(a.send("POST", "/keyset", editor, "Keyset_name=c-5&tags=c").status).To(Equal(201))
	})

	It("are shown and checked when a token is created", func() {
		a := startAPI(guarded, fixedClock)
		a.makeEditor("a", "&Token_hosts=*.a.test&Token_ports=53,53,22&Token_max_objects=9")
		a.send("GET", "/token", adminToken, "").expectJSON(200, `{"data":{"core_db_token":[{"name":"a-ci","role":"editor","tags":["a"],"hosts":["*.a.test"],"ports":[22,53],"max_objects":9,"create_ts":"`+
			timestamp+`","last_used_ts":null}]}}`)
		got := a.send("POST", "/token", adminToken, `{"Token_name":"b","Token_role":"editor","Token_tags":["b","c"],"Token_hosts":["b.test"],"Token_ports":[53],"Token_max_objects":1}`,
			"Content-Type", "application/json")
		Expect(got.status).To(Equal(201), got.body)
		Expect(a.send("GET", "/token/b", adminToken, "").body).To(ContainSubstring(`"tags":["b","c"],"hosts":["b.test"],"ports":[53],"max_objects":1,`))
		for _, bad := range [][2]string{
			{"Token_role=editor", "is required for the role editor, which changes only what has one of these tags"},
			{"Token_role=editor&Token_tags=shared", `\"shared\" is the tag of what every team may use; choose another tag`},
			{"Token_role=editor&Token_tags=a b", `\"a b\" is not a word of 1 to 63 characters`},
			{"Token_role=editor&Token_tags=1,2,3,4,5,6,7,8,9", "has 9 words; at most 8 are allowed"},
			{"Token_role=editor&Token_tags=a&Token_hosts=a*", `\"a*\" is not a host name`},
			{"Token_role=editor&Token_tags=a&Token_ports=0", "0 is not a port from 1 to 65535"},
			{"Token_role=editor&Token_tags=a&Token_ports=x", "must be a list of ports, or text with commas between them"},
			{"Token_role=editor&Token_tags=a&Token_max_objects=-1", "must be from 0 to 1000000"},
			{"Token_role=viewer&Token_tags=a", "must be editor for a token with tags, hosts, ports or a number of objects, not viewer"},
			{"Token_role=admin&Token_hosts=*", "must be editor for a token with tags, hosts, ports or a number of objects, not admin"},
		} {
			got := a.send("POST", "/token", adminToken, "Token_name=x&"+strings.ReplaceAll(bad[0], " ", "+"))
			Expect(got.status).To(Equal(400), bad[0])
			Expect(got.body).To(ContainSubstring(bad[1]), bad[0])
		}
	})

	It("are refused for every kind without a rule", func() {
		a := startAPI(guarded)
		for _, kind := range model.Kinds() {
			got := refusals(a, model.NewKey(kind, slices.Repeat([]string{"x"}, kindNames(kind))...).New())
			ours := slices.Contains([]model.Kind{"service", "upstream", "filter", "secret", "keyset", "consumer", "list"}, kind)
			part := slices.Contains([]model.Kind{"route", "key", "route_upstream", "route_filter", "service_filter", "service_secret", "proxy_service"}, kind)
			admins := slices.Contains([]model.Kind{"proxy", "globalconfig", "proxy_globalconfig", "proxy_filter"}, kind)
			Expect([]bool{ours, part, admins}).To(ContainElement(true), "%s is new: give it a rule in CheckTeam, or name it here", kind)
			if admins {
				Expect(got).To(Equal([]string{"only an admin may change this: it affects others too"}), kind)
			}
		}
		Expect(refusals(a, &unknownObject{})).To(Equal([]string{"only an admin may change this: it affects others too"}))
	})
})

// unknownObject is of a kind that does not exist yet.
type unknownObject struct{ model.Service }

func (*unknownObject) Key() model.Key { return model.NewKey("later", "x") }

func kindNames(kind model.Kind) (n int) {
	for _, word := range kind.Row().Path {
		if word != "" {
			n++
		}
	}
	return n
}
