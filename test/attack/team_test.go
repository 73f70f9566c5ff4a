package attack_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// teamTry is a call with which team a tries to change what is team b's, or to use it.
type teamTry struct {
	what, method, path string
	// body is a document if it has lines, else a form.
	body string
	// names are what the answer says about, of the objects that lack a right.
	names []string
}

func document(text string) string { return "version: 1\n" + text }

// listTries are about shared lists, by the status of the answer: who may name a list learns from its own traffic whom it has, and who may change it
// decides for all who name it.
func listTries() map[int][]teamTry {
	const filter = "Filter_name=x&tags=a&Filter_type="
	return map[int][]teamTry{
		http.StatusForbidden: {
			{what: "name a list", method: "POST", path: "/filter", body: filter + `ipaccess&Filter_config={"allow_lists":["b-list"]}`, names: []string{"/list/b-list"}},
			{what: "name a list to deny", method: "PATCH", path: "/filter/a-deny", body: `Filter_config={"deny_lists":["all-list","b-list"]}`, names: []string{"/list/b-list"}},
			{what: "name a list in a rule", method: "POST", path: "/filter", body: filter + `rbac&Filter_config={"allow":[{"address_lists":["b-list"]}]}`, names: []string{"/list/b-list"}},
			{what: "name a list in a maintenance", method: "POST", path: "/filter", body: filter + `maintenance&Filter_config={"except_lists":["b-list"]}`, names: []string{"/list/b-list"}},
			{what: "name a list of headers", method: "POST", path: "/filter", body: filter + `headers&Filter_config={"lists":["b-headers"]}`, names: []string{"/list/b-headers"}},
			{what: "name a list in a document", method: "PUT", path: "/config", body: document("filters:\n- {filter_name: x, filter_type: ipaccess, filter_config: {allow_lists: [b-list]}, tags: [a]}\n"), names: []string{"/list/b-list"}},
			{what: "shadow a list in a document", method: "PUT", path: "/config", body: document("lists:\n- {list_name: b-list, list_type: addresses, list_config: {addresses: [0.0.0.0/0]}, tags: [a]}\n"), names: []string{"/list/b-list"}},
			{what: "change a list", method: "PATCH", path: "/list/b-list", body: `List_config={"addresses":["0.0.0.0/0"]}`, names: []string{"/list/b-list"}},
			{what: "change a shared list", method: "PATCH", path: "/list/all-list", body: `List_config={"addresses":[]}`, names: []string{"/list/all-list"}},
			{what: "take over a shared list", method: "PATCH", path: "/list/all-list", body: "tags=a,shared", names: []string{"/list/all-list"}},
			{what: "replace a list", method: "PUT", path: "/list/b-list", body: `List_type=addresses&tags=a&List_config={"addresses":[]}`, names: []string{"/list/b-list"}},
			{what: "delete a list that nobody names", method: "DELETE", path: "/list/b-headers", names: []string{"/list/b-headers"}},
			{what: "share a list of another", method: "PATCH", path: "/list/b-list", body: "tags=b,shared", names: []string{"/list/b-list"}},
			{what: "a list without its tag", method: "POST", path: "/list", body: `List_name=x&List_type=addresses&List_config={"addresses":[]}`, names: []string{"/list/x"}},
			{what: "copy what names a list", method: "POST", path: "/service/deepcopy/b-shop/x", body: "fqdn=x.a.test&tags=a", names: []string{"/filter/b-office"}},
			{what: "exempt a route from a filter of the proxy", method: "PATCH", path: "/service/a-shop/route/root", body: `Route_config={"exempt":{"proxy":["office"]}}`, names: []string{"exempt.proxy: office"}},
		},
		http.StatusConflict: {
			{what: "shadow a list", method: "POST", path: "/list", body: `List_name=b-list&List_type=addresses&tags=a&List_config={"addresses":["0.0.0.0/0"]}`, names: []string{"b-list"}},
			{what: "delete a list", method: "DELETE", path: "/list/b-list", names: []string{"/list/b-list"}},
		},
		http.StatusUnprocessableEntity: {
			{what: "name a list that is not there yet", method: "POST", path: "/filter", body: filter + `ipaccess&Filter_config={"allow_lists":["later"]}`, names: []string{"later"}},
		},
	}
}

// consumerTries are about consumers, by the status of the answer: who has a consumer's groups or credentials is let in where
// it is.
func consumerTries() map[int][]teamTry {
	const own = "Consumer_name=x&tags=a&"
	return map[int][]teamTry{
		http.StatusForbidden: {
			{what: "change the groups of a consumer", method: "PATCH", path: "/consumer/b-acme", body: "Consumer_groups=gold@a", names: []string{"/consumer/b-acme"}},
			{what: "take the credentials of a consumer away", method: "PATCH", path: "/consumer/b-acme", body: "Consumer_credentials={}", names: []string{"/consumer/b-acme"}},
			{what: "take over a consumer", method: "PATCH", path: "/consumer/b-acme", body: "tags=a", names: []string{"/consumer/b-acme"}},
			{what: "replace a consumer", method: "PUT", path: "/consumer/b-acme", body: "tags=a", names: []string{"/consumer/b-acme"}},
			{what: "delete a consumer", method: "DELETE", path: "/consumer/b-acme", names: []string{"/consumer/b-acme"}},
			{what: "delete a consumer by document", method: "PUT", path: "/config?delete=true&force=true", body: document("consumers: [{consumer_name: b-acme}]\n"), names: []string{"/consumer/b-acme"}},
			{what: "shadow a consumer in a document", method: "PUT", path: "/config", body: document("consumers: [{consumer_name: b-acme, consumer_groups: [gold@a], tags: [a]}]\n"), names: []string{"/consumer/b-acme"}},
			{what: "the group of another", method: "POST", path: "/consumer", body: own + "Consumer_groups=gold@b", names: []string{"group gold@b"}},
			{what: "the group of another in a document", method: "PUT", path: "/config", body: document("consumers: [{consumer_name: x, consumer_groups: [gold@b], tags: [a]}]\n"), names: []string{"group gold@b"}},
			{what: "a credential that a consumer of another has", method: "POST", path: "/consumer", body: own + `Consumer_credentials={"keys":["b-keys/k"]}`, names: []string{"/keyset/b-keys"}},
			{what: "a credential that nobody has yet", method: "POST", path: "/consumer", body: own + `Consumer_credentials={"keys":["b-keys/later"],"users":["b-office/ann"]}`, names: []string{"/keyset/b-keys", "/filter/b-office"}},
			{what: "a subject", method: "POST", path: "/consumer", body: own + `Consumer_credentials={"tokens":[{"issuer":"https://b.test","subject":"boss"}]}`, names: []string{"only an admin"}},
			{what: "a certificate", method: "POST", path: "/consumer", body: own + `Consumer_credentials={"certificates":[{"dns":"b.test"}]}`, names: []string{"only an admin"}},
			{what: "delete a key of a consumer", method: "DELETE", path: "/keyset/b-keys/key/k", names: []string{"/keyset/b-keys/key/k"}},
			{what: "roll consumers back", method: "POST", path: "/revision/3/rollback", names: []string{"/consumer/b-acme", "/keyset/b-keys"}},
			{what: "prune consumers", method: "PUT", path: "/config?prune=true", body: document("consumers: []\n"), names: []string{"combine prune with tag=a"}},
		},
		http.StatusConflict: {
			{what: "shadow a consumer", method: "POST", path: "/consumer", body: "Consumer_name=b-acme&tags=a&Consumer_groups=gold@a", names: []string{"b-acme"}},
		},
	}
}

func teamTries() []teamTry {
	return []teamTry{
		{"change", "PATCH", "/upstream/b-blue", "Upstream_port=1", []string{"/upstream/b-blue"}},
		{"take over by tag", "PATCH", "/service/b-shop", "tags=a,b", []string{"/service/b-shop"}},
		{"replace", "PUT", "/service/b-shop", "fqdn=b.test&tags=a", []string{"/service/b-shop"}},
		{"change a shared filter", "PATCH", "/filter/all-headers", "tags=a,shared", []string{"/filter/all-headers"}},
		{"delete", "DELETE", "/service/b-shop/route/root", "", []string{"/service/b-shop/route/root"}},
		{"a route of another", "POST", "/service/b-shop/route", "Route_Name=x&Route_prefix=/&tags=a", []string{"/service/b-shop/route/x"}},
		{"attach to another's service", "POST", "/service/b-shop/filter/a-deny", "", []string{"/service/b-shop/filter/a-deny"}},
		{"attach to another's route", "POST", "/service/b-shop/route/root/upstream/a-red", "", []string{"/service/b-shop/route/root/upstream/a-red"}},
		{"attach another's upstream", "POST", "/service/a-shop/route/root/upstream/b-blue", "", []string{"/upstream/b-blue"}},
		{"attach to a proxy of another", "POST", "/proxy/inner/service/a-shop", "", []string{"/proxy/inner"}},
		{"detach another's service", "DELETE", "/proxy/gw/service/b-shop", "", []string{"/proxy/gw/service/b-shop"}},
		{"a host that is not its own", "PATCH", "/service/a-shop", "fqdn=x.b.test", []string{`host \"x.b.test\"`}},
		{"a wildcard over another", "PATCH", "/service/a-shop", "fqdn=*.test", []string{`host \"*.test\"`}},
		{"every host", "PATCH", "/service/a-shop", "fqdn=*", []string{`host \"*\"`}},
		{"a port", "POST", "/service", "Service_Name=x&fqdn=*&Mode=tcp&Port=5432&tags=a", []string{"port 5432"}},
		{"no tag", "POST", "/upstream", "Upstream_name=x&Upstream_ip=127.0.0.1&Upstream_port=1", []string{"/upstream/x"}},
		{"name a secret", "POST", "/upstream", "Upstream_name=x&Upstream_ip=127.0.0.1&Upstream_port=1&tags=a&Upstream_protocol=tls&Upstream_validation_cacertificate=b-secret", []string{"/secret/b-secret"}},
		{"a global config", "POST", "/globalconfig", `globalconfig_name=x&globalconfig_type=globalconfig_connections&tags=a&config={"max_connections":1}`, []string{"/globalconfig/x"}},
		{"a proxy", "POST", "/proxy", "Name=x&tags=a", []string{"/proxy/x"}},
		{"copy with what it uses", "POST", "/service/deepcopy/b-shop/x", "fqdn=x.a.test&tags=a", []string{"/upstream/b-blue"}},
		{"copy a route with what it uses", "POST", "/service/copyroute/b-shop/a-shop/route/root", "Route_Name=x", []string{"/upstream/b-blue"}},
		{"roll back", "POST", "/revision/3/rollback", "", []string{"/service/b-shop", "/secret/b-secret"}},
		{"prune", "PUT", "/config?prune=true", document("services: []\n"), []string{"combine prune with tag=a"}},
		{"prune by the tag of another", "PUT", "/config?prune=true&tag=b", document("services: []\n"), []string{"combine prune with tag=a"}},
		{"delete by document", "PUT", "/config?delete=true&force=true", document("secrets: [{secret_name: b-secret, secret_type: generic}]\n"), []string{"/secret/b-secret"}},
		{"the list of a proxy", "PUT", "/config", document("proxies: [{name: gw, tags: [shared], services: [a-shop]}]\n"), []string{"/proxy/gw/service/b-shop"}},
		{"own and others in one document", "PUT", "/config", document("upstreams:\n- {upstream_name: x, upstream_ip: 127.0.0.1, upstream_port: 1, tags: [a]}\n" +
			"- {upstream_name: b-blue, upstream_ip: 127.0.0.1, upstream_port: 1, tags: [b]}\n"), []string{"/upstream/b-blue"}},
		{"references in a document", "PUT", "/config", document("services:\n- {service_name: a-shop, fqdn: a.test, tags: [a], routes: [{route_name: root, route_prefix: /, upstreams: [b-blue]}]}\n"), []string{"/upstream/b-blue"}},
		{"a dump with sealed secrets", "GET", "/config?secrets=sealed", "", nil},
		{"a token", "POST", "/token", "Token_name=x&Token_role=admin", nil},
		{"the token of another", "DELETE", "/token/b-ci", "", nil},
		{"a token of a proxy", "POST", "/proxy/gw/token", "Token_name=x", nil},
	}
}

var _ = Describe("A team", func() {
	It("changes only what is its own, and others keep their traffic", func(ctx SpecContext) {
		t := startEmpty(ctx, nil)
		red, err := testkit.StartBackend("red", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(red.Close)
		address := func(b *testkit.Backend) string {
			return "Upstream_ip=" + b.IP + "&Upstream_port=" + strconv.Itoa(b.Port)
		}
		call := func(ctx context.Context, token, method, path, body string, headers ...string) testkit.Answer {
			if body != "" {
				kind := "application/x-www-form-urlencoded"
				if strings.Contains(body, "\n") {
					kind = "application/yaml"
				}
				headers = append(headers, "Content-Type: "+kind)
			}
			return try(ctx, t.API, method, path, body, append(headers, "Authorization: Bearer "+token)...)
		}
		made := func(a testkit.Answer) string {
			Expect(a.Status).To(Or(Equal(http.StatusCreated), Equal(http.StatusOK)), a.Body)
			_, token, _ := strings.Cut(a.Body, `"token":"`)
			return strings.TrimSuffix(token, `"}`)
		}
		admin := made(try(ctx, t.API, "POST", "/token", "Token_name=ann&Token_role=admin", "Content-Type: application/x-www-form-urlencoded"))
		a := made(call(ctx, admin, "POST", "/token", "Token_name=a-ci&Token_role=editor&Token_tags=a&Token_hosts=a.test,*.a.test"))
		b := made(call(ctx, admin, "POST", "/token", "Token_name=b-ci&Token_role=editor&Token_tags=b&Token_hosts=b.test"))
		for _, one := range [][3]string{
			{admin, "/proxy", "Name=inner"},
			{admin, "/proxy", "Name=gw&tags=shared"},
			{b, "/filter", `Filter_name=all-headers&Filter_type=route_filter_headers&tags=b,shared&Filter_config={"request":{"set":{"x-team":"b"}}}`},
			{b, "/secret", "Secret_name=b-secret&Secret_value=v&tags=b"},
			{b, "/upstream", "Upstream_name=b-blue&tags=b&" + address(t.blue)},
			{b, "/service", "Service_Name=b-shop&fqdn=b.test&tags=b"},
			{b, "/service/b-shop/route", "Route_Name=root&Route_prefix=/"},
			{b, "/service/b-shop/route/root/upstream/b-blue", ""},
			{b, "/proxy/gw/service/b-shop", ""},
			{b, "/list", `List_name=all-list&List_type=addresses&tags=b,shared&List_config={"addresses":["192.0.2.1"]}`},
			{b, "/list", `List_name=b-list&List_type=addresses&tags=b&List_config={"addresses":["127.0.0.1"]}`},
			{b, "/list", `List_name=b-headers&List_type=headers&tags=b&List_config={"response":{"set":{"x-b":"1"}}}`},
			{b, "/filter", `Filter_name=b-office&Filter_type=vh_filter_ipaccess&tags=b&Filter_config={"allow_lists":["b-list"]}`},
			{b, "/service/b-shop/filter/b-office", ""},
			{b, "/keyset", "Keyset_name=b-keys&tags=b"},
			{b, "/keyset/b-keys/key", "Key_name=k"},
			{b, "/consumer", `Consumer_name=b-acme&tags=b&Consumer_groups=gold@b&Consumer_credentials={"keys":["b-keys/k"]}`},
			{a, "/upstream", "Upstream_name=a-red&tags=a&" + address(red)},
			{a, "/filter", `Filter_name=a-deny&Filter_type=vh_filter_ipaccess&tags=a&Filter_config={"deny":["0.0.0.0/0"]}`},
			{a, "/service", "Service_Name=a-shop&fqdn=a.test&tags=a"},
			{a, "/service/a-shop/route", "Route_Name=root&Route_prefix=/"},
			{a, "/service/a-shop/route/root/upstream/a-red", ""},
			{a, "/service/a-shop/route/root/filter/all-headers", ""},
			{a, "/proxy/gw/service/a-shop?wait=applied", ""},
		} {
			fields := one[2]
			if at := strings.Index(fields, "{"); at >= 0 {
				fields = fields[:at] + url.QueryEscape(fields[at:])
			}
			made(call(ctx, one[0], "POST", one[1], fields))
		}
		backend := func(host string) string {
			return t.raw(ctx, "GET / HTTP/1.1", "Host: "+host).Header.Get(testkit.BackendHeader)
		}
		Eventually(backend).WithArguments("a.test").Should(Equal("red"))
		Eventually(backend).WithArguments("b.test").Should(Equal("blue"))
		dump := func() string { return call(ctx, admin, "GET", "/config", "").Body }
		before := dump()

		tries := listTries()
		tries[http.StatusForbidden] = append(tries[http.StatusForbidden], teamTries()...)
		for status, list := range consumerTries() {
			tries[status] = append(tries[status], list...)
		}
		check := func(status int, try teamTry) {
			GinkgoHelper()
			By(try.what)
			body := try.body
			if at := strings.Index(body, "{"); at >= 0 && !strings.Contains(body, "\n") {
				body = body[:at] + url.QueryEscape(body[at:])
			}
			got := call(ctx, a, try.method, try.path, body)
			Expect(got.Status).To(Equal(status), "%s: %s", try.what, got.Body)
			for _, name := range try.names {
				Expect(got.Body).To(ContainSubstring(name), try.what)
			}
			Expect(got.Body).NotTo(ContainSubstring(t.blue.IP+":"), try.what)
			Expect(dump()).To(Equal(before), try.what)
			Expect(backend("b.test")).To(Equal("blue"), try.what)
		}
		for status, list := range tries {
			for _, try := range list {
				check(status, try)
			}
		}

		By("the log level of Envoy")
		asA := []string{"Authorization: Bearer " + a}
		Expect(try(ctx, t.Admin, http.MethodPost, "/logging?level=trace", "", asA...).Status).To(Equal(http.StatusForbidden))
		Expect(try(ctx, t.Admin, http.MethodGet, "/stats", "", asA...).Status).To(Equal(http.StatusOK))

		By("races: many take over at once with the ETag that they have read")
		tag := call(ctx, a, "GET", "/upstream/b-blue", "").Header.Get("ETag")
		Expect(tag).NotTo(BeEmpty())
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				defer GinkgoRecover()
				if i%4 == 0 {
					got := call(ctx, b, "PATCH", "/upstream/b-blue", "tags=b,"+strconv.Itoa(i))
					Expect(got.Status).To(Equal(http.StatusOK), got.Body)
					return
				}
				got := call(ctx, a, "PATCH", "/upstream/b-blue", "tags=a", "If-Match: "+tag)
				Expect(got.Status).To(Or(Equal(http.StatusForbidden), Equal(http.StatusPreconditionFailed)), got.Body)
			})
		}
		all.Wait()
		Expect(call(ctx, a, "GET", "/upstream/b-blue", "").Body).NotTo(ContainSubstring(`"a"`))
		Eventually(backend).WithArguments("b.test").Should(Equal("blue"))

		By("its own document, and a rollback of what was only its own")
		at := call(ctx, admin, "GET", "/revision?limit=1", "").Body
		_, at, _ = strings.Cut(at, `"revision":`)
		at, _, _ = strings.Cut(at, ",")
		own := "version: 1\nservices:\n- {service_name: a-new, fqdn: new.a.test, tags: [a], proxies: [gw], routes: [{route_name: root, route_prefix: /, upstreams: [a-red]}]}\n"
		Expect(call(ctx, a, "PUT", "/config?tag=a&wait=applied", own).Status).To(Equal(http.StatusOK))
		Eventually(backend).WithArguments("new.a.test").Should(Equal("red"))
		got := call(ctx, a, "POST", "/revision/"+at+"/rollback?wait=applied", "")
		Expect(got.Status).To(Equal(http.StatusOK), got.Body)
		Eventually(backend).WithArguments("new.a.test").Should(BeEmpty())
		Expect(backend("b.test")).To(Equal("blue"))
	}, SpecTimeout(2*time.Minute))
})
