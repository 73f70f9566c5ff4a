package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// openSecrets is an API that checks writes, and looks at the texts of secrets.
func openSecrets(o *rest.Options) {
	rules := precheck.Rules{Now: time.Now, Unseal: sealer.Unseal}
	o.Check, o.Warn = rules.Check, rules.Warnings
	rules.Restoring = true
	o.CheckRollback = rules.Check
}

const (
	longText = "0123456789abcdef0123456789abcdef"
	// safeLogin needs no warning by itself.
	safeLogin = `{"client_id":"shop","client_secret":"open-sesame","issuer":"https://login.example.com","redirect_uri":"https://shop.example.com/callback","cookie_secret":"cookie","logout_uri":"/logout"}`
	safeOAuth = `{"openid_connect":{"provider":{"issuer":"https://login.example.com"},"client_id":"c","client_secret":"client","hmac_secret":"cookie",` +
		`"redirect_url":"%REQ(x-forwarded-proto)%://%REQ(:authority)%/callback","redirect_path_matcher":"/callback","default_signout_path":"/signout"}}`
)

// escaped is a form value.
func escaped(s string) string {
	return strings.NewReplacer("%", "%25", "+", "%2B", "&", "%26").Replace(s)
}

func loginForm(config string) string {
	return "Filter_type=http_filter_oidc&Filter_config=" + escaped(config)
}

func oauthForm(config string) string {
	return "globalconfig_type=globalconfig_oauth&config=" + escaped(config)
}

// changed is a configuration with one text in place of another.
func changed(config, was, is string) string {
	GinkgoHelper()
	Expect(strings.Count(config, was)).To(Equal(1), was)
	return strings.Replace(config, was, is, 1)
}

func (a answer) warnings() []string { return a.header.Values("Gatehouse-Warning") }

var _ = Describe("The specification's logins", func() {
	It("are accepted as they are written there", func() {
		a := startAPI(openSecrets)
		a.given("/secret", "Secret_name=client-secret&Secret_value="+longText, "/secret", "Secret_name=hmac-secret&Secret_value="+longText)
		oidc := `{"name":"oidc","client_id":"gateway","client_secret":"open-sesame","authorization_endpoint":"https://accounts.example.com/o/oauth2/v2/auth",` +
			`"token_endpoint":"https://oauth2.example.com/token","redirect_uri":"https://shop.example.com/callback","cookie_secret":"hmac-secret","logout_uri":"/logout"}`
		oauth := `{"openid_connect":{"provider":{"authorization_endpoint":"https://accounts.example.com/o/oauth2/v2/auth","token_endpoint":"https://oauth2.example.com/token"},` +
			`"client_id":"gateway","client_secret":"client-secret","hmac_secret":"hmac-secret","client_secret_namespace":"oauth","hmac_secret_namespace":"oauth","scopes":["email"],` +
			`"redirect_url":"%REQ(x-forwarded-proto)%://%REQ(:authority)%/callback","redirect_path_matcher":"/callback","default_signout_path":"/signout"},` +
			`"external_oauth_service":{"name":"oauth2.example.com","namespace":"oauth","port":443,"protocol":"tls"}}`
		a.post("/filter", "Filter_name=oidc&"+loginForm(oidc)).expectWrite(201, insertFilter, "3")
		a.post("/globalconfig", "globalconfig_name=oauth&"+oauthForm(oauth)).expectWrite(201, `{"data":{"insert_core_db_globalconfig":{"affected_rows":1}}}`, "4")
		Expect(a.get("/filter/oidc").body).To(ContainSubstring(`"filter_config":` + strings.Replace(oidc, "open-sesame", "<redacted>", 1) + `,"tags"`))
		Expect(a.get("/globalconfig/oauth").body).To(ContainSubstring(`"config":` + oauth + `,"tags"`))
		for _, call := range [][2]string{
			{"/filter", `{"Filter_name":"oidc2","Filter_type":"http_filter_oidc","Filter_config":` + oidc + `}`},
			{"/globalconfig", `{"globalconfig_name":"oauth2","globalconfig_type":"globalconfig_oauth","config":` + oauth + `}`},
		} {
			Expect(a.postJSON(call[0], call[1]).status).To(Equal(201), "as JSON")
		}
	})
})

var _ = Describe("The client secret of a login", func() {
	var a *api
	BeforeEach(func() {
		a = startAPI(openSecrets)
		a.given("/secret", "Secret_name=cookie&Secret_value="+longText, "/secret", "Secret_name=client&Secret_value=open-sesame")
	})
	const warning = `/filter/login: client_secret is the name of secret "client", so the value of the secret is used, not its name`
	named := changed(safeLogin, `"open-sesame"`, `"client"`)
	reference := changed(safeLogin, `"open-sesame"`, `{"secret":"client"}`)
	config := func() string {
		GinkgoHelper()
		var read struct {
			Data struct {
				Filters []struct {
					Config json.RawMessage `json:"filter_config"`
				} `json:"core_db_filter"`
			}
		}
		Expect(json.Unmarshal([]byte(a.get("/filter/login").body), &read)).To(Succeed())
		return string(read.Data.Filters[0].Config)
	}

	It("refers to a secret of the same name", func() {
		got := a.post("/filter?dry_run=true", "Filter_name=login&"+loginForm(named))
		Expect(got.warnings()).To(Equal([]string{warning}))
		Expect(got.body).To(ContainSubstring(`"after":` + reference))
		got = a.post("/filter", "Filter_name=login&"+loginForm(named))
		got.expectWrite(201, insertFilter, "3")
		Expect(got.warnings()).To(Equal([]string{warning}))
		Expect(config()).To(Equal(reference))
		a.delete("/secret/client").expectProblem(409, conflict("in_use", "The object is in use", "/secret/client",
			`secret \"client\" is in use; detach it from the objects in referenced_by, then delete it`, `,"referenced_by":["/filter/login"]`))
		Expect(a.get("/secret/client/filter").body).To(ContainSubstring(`"filter_name":"login"`))

		By("a second write in either form changes nothing")
		got = a.put("/filter/login", loginForm(named))
		got.expectWrite(200, updatedFilter, "3")
		Expect(got.warnings()).To(Equal([]string{warning}))
		got = a.put("/filter/login", loginForm(reference))
		got.expectWrite(200, updatedFilter, "3")
		Expect(got.warnings()).To(BeEmpty())
	})

	It("means the same in every kind of write", func() {
		a.given("/filter", "Filter_name=login&"+loginForm(safeLogin))
		document := "version: 1\nfilters:\n- filter_name: login\n  filter_type: http_filter_oidc\n  filter_config: "
		contentType, upload := multipartOf("@Filter_config", named)
		for way, write := range map[string]func() answer{
			"PUT":   func() answer { return a.put("/filter/login", loginForm(named)) },
			"PATCH": func() answer { return a.patch("/filter/login", "Filter_config="+named) },
			"upload": func() answer {
				return a.do(http.MethodPost, "/filter/login/config", contentType, strings.NewReader(upload))
			},
			"config": func() answer { return a.putConfig("", document+named+"\n") },
		} {
			By(way)
			Expect(a.put("/filter/login", loginForm(safeLogin)).status).To(Equal(200))
			Expect(config()).To(ContainSubstring(`"client_secret":"<redacted>"`))
			got := write()
			Expect(got.status).To(Equal(200), got.body)
			Expect(got.warnings()).To(Equal([]string{warning}))
			Expect(config()).To(Equal(reference))
		}
	})

	It("is the text itself if no secret has that name, even if one is created later", func() {
		Expect(a.post("/filter", "Filter_name=login&"+loginForm(changed(safeLogin, `"open-sesame"`, `"later"`))).warnings()).To(BeEmpty())
		a.given("/secret", "Secret_name=later&Secret_value=x")
		shown := config()
		Expect(shown).To(ContainSubstring(`"client_secret":"<redacted>"`))
		a.put("/filter/login", loginForm(shown)).expectWrite(200, updatedFilter, "4") // nothing changed
		Expect(a.delete("/secret/later").status).To(Equal(200))
	})

	It("is restored by a rollback in its original form", func() {
		a.given("/filter", "Filter_name=login&"+loginForm(safeLogin))
		Expect(a.put("/filter/login", loginForm(reference)).header.Get("Gatehouse-Revision")).To(Equal("4"))
		Expect(a.delete("/filter/login").status).To(Equal(200))
		Expect(a.post("/revision/3/rollback", "").status).To(Equal(200))
		Expect(config()).To(Equal(changed(safeLogin, "open-sesame", "<redacted>")))
		Expect(a.open("login")).To(Equal("open-sesame"))
		Expect(a.post("/revision/4/rollback", "").status).To(Equal(200))
		Expect(config()).To(Equal(reference))
	})

	It("survives a document, sealed or named", func() {
		a.given("/filter", "Filter_name=login&"+loginForm(safeLogin), "/filter", "Filter_name=second&"+loginForm(reference))
		dump := a.get("/config?secrets=sealed").body
		Expect(dump).To(ContainSubstring("client_secret: sealed:v1:"))
		Expect(dump).NotTo(ContainSubstring("open-sesame"))
		Expect(a.get("/config").body).To(ContainSubstring("client_secret: <redacted>"))
		revision := a.revision()
		for _, text := range []string{dump, a.get("/config").body} {
			got := a.putConfig("", text)
			Expect(got.status).To(Equal(200), got.body)
			Expect(got.warnings()).To(BeEmpty())
		}
		Expect(a.revision()).To(Equal(revision))
		Expect(a.delete("/filter/login").status).To(Equal(200))
		Expect(a.putConfig("?force=true", dump).status).To(Equal(200))
		Expect(a.open("login")).To(Equal("open-sesame"))
	})

	It("is never shown, whatever the letter case of its key", func() {
		const marker = "marker-7d1f"
		got := a.post("/filter", "Filter_name=login&"+loginForm(changed(safeLogin, `"client_secret":"open-sesame"`, `"Client_Secret":"`+marker+`"`)))
		Expect(got.status).To(Equal(400))
		Expect(got.body).To(ContainSubstring(`{"field":"Filter_config.Client_Secret","message":"unknown field; write it client_secret"}`))
		Expect(got.body).NotTo(ContainSubstring(marker))
		for _, bad := range []string{`"` + marker + `\n"`, `["` + marker + `"]`, `{"secret":"` + marker + `!"}`, `{"value":"` + marker + `"}`} {
			got := a.post("/filter", "Filter_name=login&"+loginForm(changed(safeLogin, `"open-sesame"`, bad)))
			Expect(got.status).To(Equal(400), bad)
			Expect(got.body).NotTo(ContainSubstring(marker))
		}
		got = a.post("/filter", "Filter_name=login&"+loginForm(changed(safeLogin, `"cookie_secret":"cookie"`, `"cookie_secret":"`+marker+`+/="`)))
		Expect(got.status).To(Equal(400))
		Expect(got.body).NotTo(ContainSubstring(marker))

		a.given("/filter", "Filter_name=login&"+loginForm(changed(safeLogin, "open-sesame", marker)), "/service", "Service_Name=shop&fqdn=shop.example.com", "/service/shop/filter/login", "", "/proxy", "Name=gw", "/proxy/gw/service/shop", "")
		Expect(a.put("/filter/login", loginForm(changed(safeLogin, "open-sesame", marker+"-2"))).status).To(Equal(200))
		for _, path := range []string{
			"/filter", "/filter?status=true", "/filter/login", "/service/shop/filter", "/service/shop/filter/login", "/service/dump/shop", "/proxy/dump/gw", "/config", "/config?secrets=sealed",
			"/revision/3", "/revision/8", "/secret/cookie/filter",
		} {
			got := a.get(path)
			Expect(got.status).To(Equal(200), path)
			Expect(got.body).NotTo(ContainSubstring(marker), path)
		}
		Expect(a.put("/filter/login?dry_run=true", loginForm(changed(safeLogin, "open-sesame", marker+"-3"))).body).NotTo(ContainSubstring(marker))
		Expect(a.stored()).NotTo(ContainSubstring(marker))
		Expect(a.log.String()).NotTo(ContainSubstring(marker))
	})
})

// open is the client secret of a filter, read as Envoy's configuration is.
func (a *api) open(filter string) (text string) {
	GinkgoHelper()
	Expect(a.store.Read(context.Background(), func(r store.Reader) error {
		f, err := store.Get[*model.Filter](r, model.FilterKey(filter))
		if err != nil {
			return err
		}
		text, err = sealer.Unseal(model.LoginOf(f.Parse().Spec).ClientSecret.Text, "filter/"+filter+"/client_secret")
		return err
	})).To(Succeed())
	return text
}

var _ = Describe("A service with a login", func() {
	var a *api
	BeforeEach(func() {
		a = startAPI(openSecrets)
		a.given("/secret", "Secret_name=cookie&Secret_value="+longText, "/upstream", "Upstream_name=idp&Upstream_ip=192.0.2.1&Upstream_port=443&Upstream_protocol=tls",
			"/filter", "Filter_name=login&"+loginForm(changed(safeLogin, `"issuer"`, `"upstream":"idp","issuer"`)),
			"/service", "Service_Name=shop&fqdn=shop.example.com&Public=true", "/service/shop/filter/login", "", "/service/shop/route", `Route_Name=root&Route_prefix=/&Route_config={"public":true}`)
	})

	It("is copied with it, or reports that the copy has none", func() {
		const open = `/service/till does not require the login of /service/shop: POST /service/till/filter/login attaches it`
		Expect(a.post("/service/deepcopy/shop/both", "").warnings()).NotTo(ContainElement(ContainSubstring("does not ask")))
		Expect(a.get("/service/both/filter").body).To(ContainSubstring(`"filter_name":"login"`))
		Expect(a.get("/service/both").body).To(ContainSubstring(`"public":true`))
		Expect(a.get("/service/both/route/root").body).To(ContainSubstring(`"route_config":{"public":true}`))
		got := a.post("/service/copy/shop/till", "")
		Expect(got.status).To(Equal(201))
		Expect(got.warnings()).To(Equal([]string{open}))
		Expect(a.post("/service/copyroute/shop/till/route/root", "").warnings()).To(Equal([]string{open}))
		Expect(a.delete("/service/till/route/root").status).To(Equal(200))
		Expect(a.post("/service/till/filter/login", "").status).To(Equal(201))
		Expect(a.post("/service/copyroute/shop/till/route/root", "").warnings()).To(BeEmpty())
	})

	It("keeps the upstream and the secrets of the login, and what is public", func() {
		a.given("/secret", "Secret_name=client&Secret_value=x", "/globalconfig", "globalconfig_name=sso&"+oauthForm(changed(safeOAuth, `"client_id"`, `"upstream":"idp","client_id"`)))
		a.delete("/upstream/idp").expectProblem(409, conflict("in_use", "The object is in use", "/upstream/idp",
			`upstream \"idp\" is in use; detach it from the objects in referenced_by, then delete it`, `,"referenced_by":["/filter/login","/globalconfig/sso"]`))
		Expect(a.get("/upstream/idp/filter").body).To(ContainSubstring(`"filter_name":"login"`))
		Expect(a.get("/upstream/idp/globalconfig").body).To(ContainSubstring(`"globalconfig_name":"sso"`))
		Expect(a.delete("/secret/cookie").status).To(Equal(409))
		Expect(a.patch("/filter/login", "tags=a").status).To(Equal(200))
		Expect(a.open("login")).To(Equal("open-sesame"), "a change of something else keeps it")

		revision := a.revision()
		dump := a.get("/config").body
		Expect(dump).To(And(ContainSubstring("public: true\n"), ContainSubstring("      public: true\n")))
		Expect(a.putConfig("", dump).status).To(Equal(200))
		Expect(a.revision()).To(Equal(revision))
		a.do(http.MethodGet, "/config", "", nil, "Accept", "application/json")
		By("a document without the field removes it: a login is required again")
		Expect(a.putConfig("", "version: 1\nservices:\n- service_name: shop\n  fqdn: shop.example.com\n").status).To(Equal(200))
		Expect(a.get("/service/shop").body).To(ContainSubstring(`"public":false`))
		Expect(a.post("/revision/"+strconv.FormatInt(revision, 10)+"/rollback", "").status).To(Equal(200))
		Expect(a.get("/service/shop").body).To(ContainSubstring(`"public":true`))
	})
})

var _ = Describe("A secret of a login", func() {
	It("must have text, and keeps it", func() {
		a := startAPI(openSecrets)
		ca := authority("root")
		a.given("/secret", "Secret_name=cookie&Secret_value="+longText, "/secret", "Secret_name=client&Secret_value=open-sesame", "/secret", "Secret_name=late",
			"/secret", pairForm(issue(ca, named("a.example")), "Secret_name", "tls"), "/secret", pairForm(testkit.Pair{Cert: ca.PEM}, "Secret_name", "ca"))
		bad := func(path, form, field, name, why string) {
			GinkgoHelper()
			for _, query := range []string{"?dry_run=true", ""} {
				got := a.put(path+query, form)
				Expect(got.status).To(Equal(422), got.body)
				Expect(got.body).To(ContainSubstring(`"errors":[{"field":"` + field + `","message":"names secret \"` + name + `\", which ` + why + `"}]`))
			}
		}
		const noText, isPair = "has no value", "is a certificate or a key of one"
		bad("/filter/f", loginForm(changed(safeLogin, `"cookie"`, `"late"`)), "Filter_config.cookie_secret", "late", noText)
		bad("/filter/f", loginForm(changed(safeLogin, `"cookie"`, `"tls"`)), "Filter_config.cookie_secret", "tls", isPair)
		bad("/filter/f", loginForm(changed(safeLogin, `"open-sesame"`, `{"secret":"late"}`)), "Filter_config.client_secret", "late", noText)
		bad("/filter/f", loginForm(changed(safeLogin, `"open-sesame"`, `"ca"`)), "Filter_config.client_secret", "ca", isPair)
		bad("/globalconfig/g", oauthForm(changed(safeOAuth, `"client"`, `"late"`)), "config.openid_connect.client_secret", "late", noText)
		bad("/globalconfig/g", oauthForm(changed(safeOAuth, `"cookie"`, `"tls"`)), "config.openid_connect.hmac_secret", "tls", isPair)

		Expect(a.put("/filter/f", loginForm(changed(safeLogin, `"open-sesame"`, `{"secret":"client"}`))).status).To(Equal(201))
		Expect(a.put("/globalconfig/g", oauthForm(safeOAuth)).status).To(Equal(201))
		for _, empty := range []string{"", pairForm(testkit.Pair{Cert: ca.PEM})} {
			got := a.put("/secret/cookie", empty)
			Expect(got.status).To(Equal(422), got.body)
			Expect(got.body).To(ContainSubstring(`"errors":[{"field":"Secret_value","message":"Filter_config.cookie_secret of /filter/f names secret \"cookie\", which `))
		}
		Expect(a.put("/secret/client", "").body).To(ContainSubstring(`"Filter_config.client_secret of /filter/f names secret \"client\", which has no value"`))
		Expect(a.delete("/filter/f").status).To(Equal(200))
		Expect(a.put("/secret/client", "").body).To(ContainSubstring(`"config.openid_connect.client_secret of /globalconfig/g names secret \"client\", which has no value"`))
		Expect(a.put("/secret/client", "Secret_value=other").status).To(Equal(200))
		Expect(a.put("/secret/late", "").status).To(Equal(200))
	})

	It("that is weak causes a warning, when a login names it and when it changes", func() {
		a := startAPI(openSecrets)
		a.given("/secret", "Secret_name=cookie&Secret_value=0123456789abcde", "/secret", "Secret_name=client&Secret_value=open-sesame%0A")
		const short = `names secret "cookie", which has 15 bytes, and whoever guesses it can forge a session of any user: use 32 random bytes (openssl rand -hex 32)`
		const space = `names secret "client", which begins or ends with a space or a line end, which the provider takes as part of the secret`
		Expect(a.put("/filter/f", loginForm(changed(safeLogin, `"open-sesame"`, `{"secret":"client"}`))).warnings()).To(Equal([]string{"/filter/f " + space, "/filter/f " + short}))
		Expect(a.put("/globalconfig/g", oauthForm(safeOAuth)).warnings()).To(Equal([]string{"/globalconfig/g " + space, "/globalconfig/g " + short}))
		Expect(a.put("/secret/client", "Secret_value=open-sesame").warnings()).To(Equal([]string{"/filter/f " + short, "/globalconfig/g " + short}))
		Expect(a.put("/secret/cookie", "Secret_value="+longText[:16]).warnings()).To(BeEmpty())
		Expect(a.put("/secret/cookie", "Secret_value=short").warnings()).To(ConsistOf(HavePrefix(`/filter/f names secret "cookie", which has 5 bytes`), HavePrefix("/globalconfig/g names")))
	})
})

var _ = Describe("A login that does not work as it seems to", func() {
	var a *api
	BeforeEach(func() {
		a = startAPI(openSecrets)
		a.given("/secret", "Secret_name=cookie&Secret_value="+longText, "/secret", "Secret_name=client&Secret_value=open-sesame")
	})

	DescribeTable("causes a warning on its own", func(was, is string, warnings ...string) {
		for i := range warnings {
			warnings[i] = "/filter/login " + warnings[i]
		}
		config := changed(safeLogin, was, is)
		for _, query := range []string{"?dry_run=true", ""} {
			got := a.put("/filter/login"+query, loginForm(config))
			Expect(got.status).To(BeElementOf(200, 201), got.body)
			if len(warnings) == 0 {
				Expect(got.warnings()).To(BeEmpty())
			} else {
				Expect(got.warnings()).To(Equal(warnings))
			}
		}
	},
		Entry("but not if it is safe", "shop.example.com", "shop.example.com"),
		Entry("no keys", `"issuer":"https://login.example.com"`, `"authorization_endpoint":"https://l.example/a","token_endpoint":"https://l.example/t"`,
			"has neither issuer nor jwks_uri: the id_token is not verified, so that whoever has the cookie secret, or is between here and the provider, can act as any user"),
		Entry("but not for keys without an issuer", `"issuer":"https://login.example.com"`, `"authorization_endpoint":"https://l.example/a","token_endpoint":"https://l.example/t","jwks_uri":"https://l.example/k"`),
		Entry("a way back over plain HTTP", "https://shop.example.com/", "http://shop.example.com/",
			"sends users back over plain HTTP: browsers keep the cookies of a login only over HTTPS, so no login completes"),
		Entry("but not for a way back to this machine", "https://shop.example.com/", "http://localhost:8080/"),
		Entry("but not for a way back to the loopback address", "https://shop.example.com/", "http://127.0.0.1:8080/"),
		Entry("an issuer over plain HTTP", "https://login.example.com", "http://login.example.com",
			"has issuer http://login.example.com, which is plain HTTP: anyone on the network path can replace the provider's keys"),
		Entry("but not for an issuer on this machine", "https://login.example.com", "http://[::1]:8081"),
		Entry("endpoints over plain HTTP", `"issuer":"https://login.example.com"`, `"authorization_endpoint":"http://l.example/a","token_endpoint":"http://l.example/t","jwks_uri":"http://l.example/k","end_session_endpoint":"http://l.example/e"`,
			"has jwks_uri http://l.example/k, which is plain HTTP: anyone on the network path can replace the provider's keys",
			"has authorization_endpoint http://l.example/a, which is plain HTTP: anyone on the network path can ask users for their passwords",
			"has token_endpoint http://l.example/t, which is plain HTTP: anyone on the network path reads the client secret and the tokens",
			"has end_session_endpoint http://l.example/e, which is plain HTTP: anyone on the network path reads id_tokens"),
		Entry("a client ID that Envoy does not encode", `"client_id":"shop"`, `"client_id":"shop:1","token_endpoint_auth_method":"client_secret_basic"`,
			"has a client_id that client_secret_basic needs percent-encoded (RFC 6749 section 2.3.1), and Envoy sends it as it is: use client_secret_post"),
		Entry("but not for a client ID that needs no encoding", `"client_id":"shop"`, `"client_id":"shop-1","token_endpoint_auth_method":"client_secret_basic"`),
	)

	It("causes a warning together with its upstream, its external service, or a secret that it names", func() {
		a.given("/upstream", "Upstream_name=idp&Upstream_ip=192.0.2.1&Upstream_port=80", "/secret", "Secret_name=odd&Secret_value=a%2Bb")
		got := a.put("/filter/login", loginForm(changed(safeLogin, `"issuer":"https://login.example.com"`,
			`"issuer":"https://login.example.com","authorization_endpoint":"https://l.example/a","token_endpoint":"https://l.example/t","upstream":"idp"`)))
		Expect(got.warnings()).To(Equal([]string{`/filter/login has a token_endpoint that is https, and its upstream "idp" has the protocol http: where it is attached, services answer 503`}))
		got = a.put("/filter/login", loginForm(changed(safeLogin, `"client_secret":"open-sesame"`, `"client_secret":{"secret":"odd"},"token_endpoint_auth_method":"client_secret_basic"`)))
		Expect(got.warnings()).To(Equal([]string{`/filter/login names secret "odd", which has a character that client_secret_basic needs percent-encoded (RFC 6749 section 2.3.1), and Envoy sends it as it is: use client_secret_post`}))
		got = a.put("/globalconfig/login", oauthForm(strings.TrimSuffix(safeOAuth, "}")+`,"external_oauth_service":{"name":"google","port":443}}`))
		Expect(got.warnings()).To(Equal([]string{`/globalconfig/login looks for the provider at the host google (external_oauth_service.name), which is a name within one network: outside a cluster, set the provider's host name`}))
	})

	// attached is a service with the login, on a proxy.
	attached := func(fqdn, service, config, proxy string) answer {
		GinkgoHelper()
		a.given("/filter", "Filter_name=login&"+loginForm(config), "/proxy", "Name=gw"+proxy, "/service", "Service_Name=shop&fqdn="+fqdn+service, "/proxy/gw/service/shop", "")
		return a.post("/service/shop/filter/login", "")
	}
	const front = "&Trusted_hops=1"
	anyHost := changed(safeLogin, "https://shop.example.com/callback", "/callback")

	DescribeTable("causes a warning on a service", func(fqdn, service string, config, proxy string, warnings ...string) {
		got := attached(fqdn, service, config, proxy)
		Expect(got.status).To(Equal(201))
		if len(warnings) == 0 {
			Expect(got.warnings()).To(BeEmpty())
		} else {
			Expect(got.warnings()).To(Equal(warnings))
		}
	},
		Entry("but not if it is safe", "Shop.Example.com", "", safeLogin, front),
		Entry("but not for a wildcard that covers the host", "*.example.com", "", safeLogin, front),
		Entry("another host", "till.example.com", "", safeLogin, front,
			`/filter/login sends users back to shop.example.com, and service "shop" is for till.example.com: a login that begins there does not complete there`),
		Entry("a wildcard that does not cover the host", "*.shop.example.com", "", safeLogin, front,
			`/filter/login sends users back to shop.example.com, and service "shop" is for *.shop.example.com: a login that begins there does not complete there`),
		Entry("but not for every host", "*", "", safeLogin, front),
		Entry("every host, and a way back to any", "*", "", anyHost, front,
			`/filter/login sends users back to the host that they requested, and service "shop" is for every host ("*"): it answers 503, because anybody could send users elsewhere after a login; set a host in the redirect`),
		Entry("but not for a wildcard, and a way back to any", "*.example.com", "", anyHost, front),
		Entry("a host with an underscore", "my_shop.example.com", "", anyHost, front,
			`/filter/login cannot log anybody in on service "shop": its host my_shop.example.com has an underscore, which Envoy does not accept in a URL`),
		Entry("plain HTTP only", "shop.example.com", "", safeLogin, "",
			`/filter/login cannot complete a login on service "shop", which has no certificate, unless a proxy in front has one: browsers keep the cookies of a login only over HTTPS; attach a certificate, or set Trusted_hops of the proxy to the number of proxies in front`),
		Entry("but not on this machine", "localhost", "", anyHost, ""),
		Entry("a public service", "shop.example.com", "&Public=true", safeLogin, front,
			`service "shop" is public, but /filter/login on it still requires a login: Public applies to a globalconfig_oauth only`),
	)

	It("causes a warning when a certificate, a route, a host or another login is added", func() {
		const plain = `/filter/login cannot complete a login on service "shop" over plain HTTP, where browsers do not keep its cookies: set Https=redirect`
		Expect(attached("shop.example.com", "", safeLogin, "").warnings()).To(ConsistOf(ContainSubstring("which has no certificate")))
		a.given("/secret", pairForm(issue(authority("root"), named("shop.example.com", "*.example.com")), "Secret_name", "tls"))
		Expect(a.post("/service/shop/secret/tls", "").warnings()).To(Equal([]string{plain}))
		Expect(a.patch("/service/shop", "Https=redirect").warnings()).To(BeEmpty())
		Expect(a.patch("/service/shop", "fqdn=till.example.com").warnings()).To(ConsistOf(ContainSubstring("sends users back to shop.example.com")))
		Expect(a.patch("/service/shop", "fqdn=shop.example.com").warnings()).To(BeEmpty())
		Expect(a.post("/service/shop/route", "Route_Name=cb&Route_prefix=/callback").warnings()).To(BeEmpty(), "there is more below it")
		for path, route := range map[string]string{"/callback": "a", "/logout": "b"} {
			Expect(a.post("/service/shop/route", `Route_Name=`+route+`&Route_prefix=`+path+`&Route_config={"match":"exact"}`).warnings()).To(
				ContainElement(`/service/shop/route/` + route + ` is for ` + path + `, which /filter/login answers: it gets no request`))
		}
		Expect(a.delete("/service/shop/route/a").status).To(Equal(200))
		Expect(a.delete("/service/shop/route/b").status).To(Equal(200))
		a.given("/filter", "Filter_name=second&"+loginForm(safeLogin))
		Expect(a.post("/service/shop/filter/second", "").warnings()).To(Equal([]string{
			`service "shop" has the logins /filter/login and /filter/second, and only one can apply: it answers 503; detach one`,
		}))
		Expect(a.delete("/service/shop/filter/second").warnings()).To(BeEmpty())
		Expect(a.delete("/service/shop/secret/tls").warnings()).To(ContainElement(ContainSubstring("which has no certificate")))
		Expect(a.patch("/proxy/gw", "Trusted_hops=2").warnings()).To(BeEmpty())
		Expect(a.patch("/proxy/gw", "Trusted_hops=0").warnings()).To(ConsistOf(ContainSubstring("which has no certificate")))
	})

	It("causes a warning for the services of its proxies", func() {
		a.given("/proxy", "Name=gw&Trusted_hops=1", "/proxy", "Name=other", "/service", "Service_Name=any&fqdn=*", "/service", "Service_Name=free&fqdn=free.example.com&Public=true",
			"/service", "Service_Name=own&fqdn=own.example.com", "/service", "Service_Name=shop&fqdn=shop.example.com", "/filter", "Filter_name=login&"+loginForm(anyHost), "/service/own/filter/login", "")
		for _, service := range []string{"any", "free", "own", "shop"} {
			a.given("/proxy/gw/service/"+service, "")
		}
		every := ContainSubstring(`/globalconfig/sso sends users back to the host that they requested, and service "any" is for every host ("*")`)
		Expect(a.put("/globalconfig/sso", oauthForm(safeOAuth)).warnings()).To(ConsistOf(every))
		plain := ContainSubstring(`/globalconfig/sso cannot complete a login on service "shop", which has no certificate`)
		Expect(a.post("/proxy/other/service/shop", "").warnings()).To(ConsistOf(plain))
		Expect(a.post("/proxy/other/service/free", "").warnings()).To(BeEmpty())
		Expect(a.patch("/service/free", "Public=false").warnings()).To(ConsistOf(ContainSubstring(`service "free"`)))
		Expect(a.post("/proxy/gw/globalconfig/sso", "").warnings()).To(ConsistOf(every), "it no longer applies to the other proxy")
		a.patch("/service/free", "Public=true")
		Expect(a.put("/globalconfig/two", oauthForm(safeOAuth)).warnings()).To(And(ContainElement(
			`proxy "gw" has the logins /globalconfig/sso and /globalconfig/two, and only one can apply: service "shop" answers 503 there`),
			Not(ContainElement(ContainSubstring(`service "free"`)))))
	})
})
