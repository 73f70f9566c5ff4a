package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// textLines returns the lines of Envoy's standard output that begin with a word and a space, without these.
func textLines(g *testkit.Gatehouse, word string) (list []string) {
	for _, l := range g.Stdout.Lines() {
		if line, is := strings.CutPrefix(l, word+" "); is {
			list = append(list, line)
		}
	}
	return list
}

var _ = Describe("The logs of a service", func() {
	It("are those that its filter names, or none, and those that are always written", func() {
		g, gw, _ := shop("--access-log", "json")
		t := traced{gateway: gw}
		for _, name := range []string{"own", "quiet"} {
			addService(gw.api, name, name+".example", "blue")
			post(gw.api, "/proxy/gw/service/"+name)
		}
		addRoute(gw.api, "own", "beside", "/beside", "", "blue")
		addRoute(gw.api, "own", "closed", "/closed", `{"websocket":false}`, "blue")
		for name, config := range map[string]string{
			"to-own": `{"logs":["own"]}`, "to-none": `{"logs":[]}`, "to-both": `{"logs":["own","main","nowhere"]}`,
		} {
			post(gw.api, "/filter", "Filter_name="+name, "Filter_type=route_filter_accesslog", "Filter_config="+config)
		}
		post(gw.api, "/filter", "Filter_name=nobody", "Filter_type=vh_filter_ipaccess", `Filter_config={"deny":["0.0.0.0/0"]}`)
		const text = " {authority}{path} {response_code}"
		t.log("audit", map[string]any{"always": true, "text": "audit" + text})
		t.log("main", map[string]any{"text": "main" + text})
		t.log("own", map[string]any{"attached_only": true, "text": "own" + text})

		updates := func() string { return read(adminOf(g), "/stats?filter=^listener_manager[.]lds[.]update_success") }
		before := updates()
		post(gw.api, "/service/quiet/filter/to-none")
		post(gw.api, "/service/own/route/beside/filter/to-both")
		post(gw.api, "/service/own/filter/to-own?wait=applied")
		Expect(updates()).To(Equal(before), "no filter changes the listener")

		ask := func(host, path string, headers ...string) string {
			a := gw.get(host, path, headers...)
			return fmt.Sprintf("%s%s %d", host, path, a.Status)
		}
		var all, main, own []string
		in := func(line string, lists ...*[]string) {
			all = append(all, line)
			for _, l := range lists {
				*l = append(*l, line)
			}
		}
		in(ask("shop.example", "/a"), &main)
		in(ask("own.example", "/a"), &own)
		in(ask("own.example", "/beside"), &own, &main)
		in(ask("own.example", "/closed", "Connection: upgrade", "Upgrade: websocket"), &own)
		in(ask("quiet.example", "/a"))
		remove(gw.api, "/service/own/route/root?wait=applied")
		in(ask("own.example", "/nowhere"), &own)
		in(ask("shop.example", "/b"), &main)
		post(gw.api, "/service/own/filter/nobody")
		post(gw.api, "/service/quiet/filter/nobody?wait=applied")
		in(ask("own.example", "/beside"), &own, &main)
		in(ask("quiet.example", "/refused"))
		Expect(all).To(ContainElements("own.example/closed 403", "own.example/nowhere 404", "quiet.example/refused 403"))

		Eventually(textLines).WithArguments(g, "audit").Should(Equal(all))
		Expect(textLines(g, "main")).To(Equal(main))
		Expect(textLines(g, "own")).To(Equal(own))

		By("detaching")
		remove(gw.api, "/service/quiet/filter/to-none?wait=applied")
		in(ask("quiet.example", "/heard"), &main)
		Eventually(textLines).WithArguments(g, "main").Should(Equal(main))
		Expect(slices.Contains(textLines(g, "own"), "quiet.example/heard 403")).To(BeFalse())
	})

	It("are lines of text with the fields that they name, in the lean profile too, and a client adds no line", func() {
		g, gw, _ := shop("--access-log", "off")
		t := traced{gateway: gw}
		issuer := testkit.NewTokenIssuer("https://issuer.test", "a")
		post(gw.api, "/filter", "Filter_name=tokens", "Filter_type=http_filter_jwt",
			`Filter_config={"issuer":"https://issuer.test","jwks":`+issuer.JWKS()+`}`)
		post(gw.api, "/service/shop/filter/tokens")
		post(gw.api, "/globalconfig", "globalconfig_name=globals", "globalconfig_type=globalconfig_globals", `config={"lean":true}`)
		t.log("text", map[string]any{
			"text":   "line {{100%}} {method} {authority}{path} {response_code} {response_code_details} {user_agent} [{tenant}] [{subject}] [{name}] [{roles}] [{client}] [{sni}] {note}",
			"fields": []any{map[string]any{"name": "tenant", "header": "x-tenant"}, map[string]any{"name": "name", "claim": "name"}, map[string]any{"name": "roles", "claim": "roles"}, map[string]any{"name": "note", "value": "50%REQ(cookie)%"}},
		})
		token := issuer.Token(map[string]any{"sub": "ann", "name": "x\nline forged", "roles": []string{"a", "b\nline forged"}})
		a := gw.get("shop.example", "/text?secret=1", "X-Tenant: acme", "User-Agent: it", "Authorization: Bearer "+token)
		Expect(a.Status).To(Equal(http.StatusOK))
		gw.get("shop.example", "/without", "User-Agent: it")
		Eventually(textLines).WithArguments(g, "line").Should(Equal([]string{
			`{100%} GET shop.example/text 200 via_upstream it [acme] [ann] [?] [["a","b\nline forged"]] [-] [-] 50%REQ(cookie)%`,
			`{100%} GET shop.example/without 401 jwt_authn_access_denied{Jwt_is_missing} it [-] [-] [-] [-] [-] [-] 50%REQ(cookie)%`,
		}))
	})
})
