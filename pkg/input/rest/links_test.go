package rest_test

import (
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// linkedObjects has one object of each kind, and a link of each kind.
func linkedObjects() []string {
	return append(everything(),
		"/secret", "Secret_name=key&Secret_value=0123456789abcdef0123456789abcdef",
		"/secret", "Secret_name=ca",
		"/filter", `Filter_name=limit&Filter_type=route_filter_ratelimit&Filter_config={"descriptors":[{"remote_address":"client"}]}`,
		"/globalconfig", `globalconfig_name=rates&globalconfig_type=globalconfig_ratelimit&config={"domain":"shop"}`,
		"/service/shop/route/root/filter/limit", "",
		"/service/shop/filter/limit", "",
		"/service/shop/secret/ca", "",
		"/proxy/gw/globalconfig/rates", "",
	)
}

var _ = Describe("Links", func() {
	DescribeTable("can be read one by one: the attached object, or what is missing",
		func(link, object, notAttached, message string) {
			a := startAPI()
			a.given(linkedObjects()...)
			a.given("/upstream", "Upstream_name=green&Upstream_ip=10.0.0.2&Upstream_port=1", "/service", "Service_Name=other&fqdn=other.example",
				"/filter", `Filter_name=more&Filter_type=route_filter_ratelimit&Filter_config={"descriptors":[{"remote_address":"client"}]}`,
				"/globalconfig", `globalconfig_name=more&globalconfig_type=globalconfig_ratelimit&config={"domain":"more"}`)
			got, want := a.get(link), a.get(object)
			Expect(got.status).To(Equal(200), got.body)
			Expect(got.body).To(Equal(want.body))
			Expect(got.header.Get("ETag")).To(Equal(want.header.Get("ETag")))

			path := link[:strings.LastIndex(link, "/")+1]
			for name, detail := range map[string]string{notAttached: message, "nothing": `"nothing" does not exist`} {
				missing := a.get(path + name)
				Expect(missing.status).To(Equal(404), missing.body)
				Expect(missing.body).To(ContainSubstring(strings.ReplaceAll(detail, `"`, `\"`)))
			}
			// What a read says can be sent back.
			Expect(a.do(http.MethodDelete, link, "", nil, "If-Match", `"other"`).status).To(Equal(412))
			Expect(a.do(http.MethodDelete, link, "", nil, "If-Match", got.header.Get("ETag")).status).To(Equal(200))
			Expect(a.get(link).status).To(Equal(404))
			Expect(a.do(http.MethodDelete, link, "", nil, "If-Match", got.header.Get("ETag")).status).To(Equal(404))
		},
		Entry(nil, "/service/shop/route/root/upstream/blue", "/upstream/blue", "green", `upstream "green"`),
		Entry(nil, "/service/shop/route/root/filter/limit", "/filter/limit", "more", `filter "more"`),
		Entry(nil, "/service/shop/filter/limit", "/filter/limit", "more", `filter "more"`),
		Entry(nil, "/service/shop/secret/ca", "/secret/ca", "key", `secret "key"`),
		Entry(nil, "/proxy/gw/service/shop", "/service/shop", "other", `service "other"`),
		Entry(nil, "/proxy/gw/globalconfig/rates", "/globalconfig/rates", "more", `globalconfig "more"`),
	)

	DescribeTable("are listed from both ends", func(path, field, name string) {
		a := startAPI()
		a.given(linkedObjects()...)
		a.given("/upstream", "Upstream_name=checked&Upstream_ip=10.0.0.2&Upstream_port=1&Upstream_protocol=tls&Upstream_validation_cacertificate=ca")
		a.given("/upstream", "Upstream_name=idp&Upstream_ip=10.0.0.3&Upstream_port=1")
		a.given("/filter", `Filter_name=login&Filter_type=http_filter_oidc&Filter_config={"client_id":"a","client_secret":"b",`+
			`"issuer":"https://id.example","redirect_uri":"https://shop.example/cb","cookie_secret":"key","upstream":"idp"}`)
		a.given("/globalconfig", `globalconfig_name=oauth&globalconfig_type=globalconfig_oauth&config={"openid_connect":{"provider":{`+
			`"authorization_endpoint":"https://id.example/a","token_endpoint":"https://id.example/t"},"client_id":"a","client_secret":"key",`+
			`"hmac_secret":"key","redirect_url":"https://shop.example/cb","redirect_path_matcher":"/cb"}}`)
		got := a.get(path)
		Expect(got.status).To(Equal(200), got.body)
		Expect(strings.Count(got.body, `"`+field+`":"`)).To(Equal(1), got.body)
		Expect(got.body).To(ContainSubstring(`"` + field + `":"` + name + `"`))
		Expect(a.get(path + "?name=zzz").body).NotTo(ContainSubstring(field))

		parts := strings.Split(path, "/")
		parts[2] = "nothing"
		missing := a.get(strings.Join(parts, "/"))
		Expect(missing.status).To(Equal(404), missing.body)
		Expect(missing.body).To(ContainSubstring(`\"nothing\" does not exist`))
	},
		Entry(nil, "/service/shop/route/root/upstream", "upstream_name", "blue"),
		Entry(nil, "/upstream/blue/route", "route_name", "root"),
		Entry(nil, "/service/shop/route/root/filter", "filter_name", "limit"),
		Entry(nil, "/filter/limit/route", "route_name", "root"),
		Entry(nil, "/service/shop/filter", "filter_name", "limit"),
		Entry(nil, "/filter/limit/service", "service_name", "shop"),
		Entry(nil, "/service/shop/secret", "secret_name", "ca"),
		Entry(nil, "/secret/ca/service", "service_name", "shop"),
		Entry(nil, "/secret/ca/upstream", "upstream_name", "checked"),
		Entry(nil, "/secret/key/filter", "filter_name", "login"),
		Entry(nil, "/secret/key/globalconfig", "globalconfig_name", "oauth"),
		Entry(nil, "/upstream/idp/filter", "filter_name", "login"),
		Entry(nil, "/proxy/gw/service", "service_name", "shop"),
		Entry(nil, "/service/shop/proxy", "name", "gw"),
		Entry(nil, "/proxy/gw/globalconfig", "globalconfig_name", "rates"),
		Entry(nil, "/globalconfig/rates/proxy", "name", "gw"),
	)

	It("of a secret list the services that it is attached to, then those that name it, each once", func() {
		a := startAPI()
		a.given("/secret", "Secret_name=ca")
		for _, name := range []string{"names1", "both", "names2", "attached", "names3"} {
			a.given("/service", "Service_Name="+name+"&fqdn="+name+".example&tags="+name[:4])
			if name != "attached" {
				Expect(a.patch("/service/"+name, "Client_validation_cacertificate=ca").status).To(Equal(200))
			}
		}
		a.given("/service/attached/secret/ca", "", "/service/both/secret/ca", "")
		all := []string{"attached", "both", "names1", "names2", "names3"}
		for limit := 1; limit <= 6; limit++ {
			var want [][]string
			for at := 0; at < len(all); at += limit {
				want = append(want, all[at:min(at+limit, len(all))])
			}
			Expect(a.walk(fmt.Sprint("/secret/ca/service?limit=", limit), "service_name")).To(Equal(want))
		}
		Expect(a.walk("/secret/ca/service?limit=1&name=names", "service_name")).To(Equal([][]string{{"names1"}, {"names2"}, {"names3"}}))
		Expect(a.walk("/secret/ca/service?limit=2&tag=name", "service_name")).To(Equal([][]string{{"names1", "names2"}, {"names3"}}))
		Expect(a.get("/secret/ca/service?after=x").body).To(ContainSubstring("is not a cursor of this list"))
		a.delete("/service/attached/secret/ca")
		a.delete("/service/both/secret/ca")
		Expect(a.walk("/secret/ca/service?limit=2", "service_name")).To(Equal([][]string{{"names1", "both"}, {"names2", "names3"}}))
	})

	It("are listed page by page, also by what names a secret", func() {
		a := startAPI()
		a.given("/secret", "Secret_name=ca")
		for _, name := range []string{"c", "a", "b"} {
			a.given("/upstream", "Upstream_name="+name+"&Upstream_ip=10.0.0.2&Upstream_port=1&Upstream_protocol=tls&Upstream_validation_cacertificate=ca")
		}
		Expect(a.walk("/secret/ca/upstream?limit=2", "upstream_name")).To(Equal([][]string{{"c", "a"}, {"b"}}))
	})
})

var _ = Describe("The result of a write", func() {
	It("is where Location points, in the state of the ETag", func() {
		a := startAPI()
		calls := append(linkedObjects(),
			"/upstream/copy/blue/blue2", "", "/service/copy/shop/shop2", "", "/service/deepcopy/shop/shop3", "",
			"/service/copyroute/shop/shop2/route/root", "")
		for i := 0; i < len(calls); i += 2 {
			got := a.post(calls[i], calls[i+1])
			Expect(got.status).To(Equal(201), got.body)
			at := got.header.Get("Location")
			Expect(at).NotTo(BeEmpty(), calls[i])
			read := a.get(at)
			Expect(read.status).To(Equal(200), at)
			Expect(got.header.Get("ETag")).To(Equal(read.header.Get("ETag")), at)
		}
		for path, fields := range map[string]string{
			"/upstream/new": "Upstream_ip=10.0.0.1&Upstream_port=1", "/service/new": "fqdn=new.example", "/service/shop/route/new": "Route_prefix=/new",
			"/proxy/new": "", "/filter/new": "Filter_type=route_filter_ratelimit", "/secret/new": "Secret_value=x",
			"/globalconfig/new": `globalconfig_type=globalconfig_ratelimit&config={"domain":"new"}`,
		} {
			if strings.HasPrefix(path, "/filter") {
				fields += `&Filter_config={"descriptors":[{"remote_address":"client"}]}`
			}
			got := a.put(path, fields)
			Expect(got.status).To(Equal(201), got.body)
			Expect(got.header.Get("Location")).To(Equal(path))
			Expect(got.header.Get("ETag")).To(Equal(a.get(path).header.Get("ETag")))
			again := a.put(path, fields)
			Expect(again.status).To(Equal(200), again.body)
			Expect(again.header).NotTo(HaveKey("Location"))
		}
		dry := a.post("/service?dry_run=true", "Service_Name=dry&fqdn=dry.example")
		Expect(dry.status).To(Equal(200), dry.body)
		Expect(dry.header).NotTo(Or(HaveKey("Location"), HaveKey("Etag")))
	})

	It("is 0 rows for a PATCH without fields", func() {
		a := startAPI()
		a.given(linkedObjects()...)
		revision := a.revision()
		for path, kind := range map[string]string{
			"/upstream/blue": "upstream", "/service/shop": "service", "/service/shop/route/root": "route", "/proxy/gw": "proxy",
			"/filter/limit": "filter", "/globalconfig/rates": "globalconfig", "/secret/key": "secret",
		} {
			a.do(http.MethodPatch, path, "application/json", strings.NewReader(`{}`)).
				expectJSON(200, `{"data":{"update_core_db_`+kind+`":{"affected_rows":0}}}`)
			a.patch(path, "").expectJSON(200, `{"data":{"update_core_db_`+kind+`":{"affected_rows":0}}}`)
		}
		a.patch("/service/shop", "Service_Name=shop").expectJSON(200, `{"data":{"update_core_db_service":{"affected_rows":0}}}`)
		Expect(a.revision()).To(Equal(revision))
		a.patch("/service/shop", "fqdn=new.example.com").expectJSON(200, `{"data":{"update_core_db_service":{"affected_rows":1}}}`)
	})
})

var _ = Describe("A call without a body", func() {
	DescribeTable("accepts null for no body, which some clients send", func(body string, status int) {
		a := startAPI()
		a.given(everything()...)
		a.delete("/proxy/gw/service/shop")
		Expect(a.postJSON("/proxy/gw/service/shop", body).status).To(Equal(status))
	},
		Entry(nil, "null", 201),
		Entry(nil, " null\n", 201),
		Entry(nil, "{}", 201),
		Entry(nil, `{"fqdn":"*"}`, 400),
		Entry(nil, "nul", 400),
		Entry(nil, "null null", 400),
		Entry(nil, "[]", 400),
	)

	It("accepts null everywhere, unlike a call with a body", func() {
		a := startAPI()
		a.given(everything()...)
		null := func(method, path string) answer {
			return a.do(method, path, "application/json", strings.NewReader("null"))
		}
		for _, path := range []string{"/upstream/copy/blue/b2", "/service/copy/shop/s2", "/service/deepcopy/shop/s3", "/service/copyroute/shop/s2/route/root"} {
			Expect(null(http.MethodPost, path).status).To(Equal(201), path)
		}
		Expect(null(http.MethodDelete, "/upstream/b2").status).To(Equal(200))
		Expect(null(http.MethodPatch, "/upstream/blue").status).To(Equal(400))
		Expect(null(http.MethodPut, "/upstream/blue").status).To(Equal(400))
		Expect(null(http.MethodPost, "/upstream").status).To(Equal(400))
	})
})
