package attack_test

import (
	"context"
	"crypto/sha1" //nolint:gosec // what Envoy compares
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// credentialTry is a request to a service that requires a key or a password.
type credentialTry struct {
	what    string
	headers []string
	status  int
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// keyTries returns requests to a service for the keys of partners, in x-api-key. Each key's secret is its own name.
func keyTries() []credentialTry {
	good, other := encoded("partners/web:web"), encoded("staff/web:web")
	return []credentialTry{
		{"a key", []string{"X-Api-Key: " + good}, 200},
		{"a key in a header of other letters", []string{"x-API-key: " + good}, 200},
		{"none", nil, 401},
		{"an empty one", []string{"X-Api-Key: "}, 401},
		{"a key of another set", []string{"X-Api-Key: " + other}, 403},
		{"a key of another set with the name of the set in its secret", []string{"X-Api-Key: " + encoded("staff/web:partners/web")}, 401},
		{"the name of a key with the secret of another set", []string{"X-Api-Key: " + encoded("partners/web:mobile")}, 401},
		{"a key of a set that begins with the name", []string{"X-Api-Key: " + encoded("partners2/web:web")}, 403},
		{"the set alone", []string{"X-Api-Key: " + encoded("partners/:")}, 401},
		{"the name in other letters", []string{"X-Api-Key: " + encoded("Partners/web:web")}, 401},
		{"nobody", []string{"X-Api-Key: " + encoded("-:")}, 401},
		{"the hash", []string{"X-Api-Key: " + encoded("partners/web:"+sha("web"))}, 401},
		{"two names", []string{"X-Api-Key: " + encoded("partners/web:staff/web:web")}, 401},
		{"a line of a list", []string{"X-Api-Key: " + encoded("partners/web:web\nstaff/web:web")}, 401},
		{"with a zero byte", []string{"X-Api-Key: " + encoded("partners/web:web\x00")}, 401},
		{"not encoded", []string{"X-Api-Key: partners/web:web"}, 401},
		{"with a scheme", []string{"X-Api-Key: Basic " + good}, 401},
		{"with text behind it", []string{"X-Api-Key: " + good + " x"}, 401},
		{"with another behind it", []string{"X-Api-Key: " + good + "," + good}, 401},
		{"encoded for URLs", []string{"X-Api-Key: " + base64.URLEncoding.EncodeToString([]byte("partners/web:???>>>"))}, 401},
		{"in the inner header", []string{"X-Gatehouse-Key: Basic " + good}, 401},
		{"a bad one, a good one in the inner header", []string{"X-Api-Key: x", "X-Gatehouse-Key: Basic " + good}, 401},
		{"the inner header, named by Connection", []string{"Connection: x-api-key", "X-Gatehouse-Key: Basic " + good}, 401},
		{"in Authorization", []string{"Authorization: Basic " + good}, 401},
		{"in a cookie", []string{"Cookie: x-api-key=" + good}, 401},
		{"in a header with an underscore", []string{"X_Api_Key: " + good}, 400},
		{"a bad one before a good one", []string{"X-Api-Key: " + other + "x", "X-Api-Key: " + good}, 401},
		{"who says who it is", []string{"X-Client: partners/web"}, 401},
		{"a command of Envoy", []string{"X-Api-Key: %REQ(x-other)%", "X-Other: " + good}, 401},
		{"a long one", []string{"X-Api-Key: " + encoded("partners/web:"+strings.Repeat("x", 20000))}, 401},
		{"one that is longer than headers may be", []string{"X-Api-Key: " + strings.Repeat("x", 70000)}, 431},
	}
}

// keyPlaceTries returns requests to a service for the keys of partners, in the parameter apikey or the cookie key.
func keyPlaceTries() []credentialTry {
	good := encoded("partners/web:web")
	at := func(target string, headers ...string) []string {
		return append([]string{"GET " + target + " HTTP/1.1"}, headers...)
	}
	return []credentialTry{
		{"a key", at("/?apikey=" + good), 200},
		{"a key in a cookie", at("/", "Cookie: key="+good), 200},
		{"none", at("/"), 401},
		{"in a fragment", at("/?#apikey=" + good), 400},
		{"in the path of the parameter", at("/apikey=" + good + "?a"), 401},
		{"behind a second question mark", at("/?a?apikey=" + good), 401},
		{"behind a semicolon", at("/?a=1;apikey=" + good), 401},
		{"encoded twice", at("/?apikey=" + strings.ReplaceAll(good, "=", "%253D")), 401},
		{"with a line break and another header", at("/?apikey=x%0d%0aX-Gatehouse-Key:%20Basic%20" + good), 401},
		{"with a line break and another client", at("/?apikey=" + good + "%0d%0aX-Client:%20root"), 401},
		{"with a zero byte", at("/?apikey=" + good + "%00"), 401},
		{"with a space and the scheme", at("/?apikey=Basic%20" + good), 401},
		{"a command of Envoy", at("/?apikey=%25REQ(x-other)%25", "X-Other: "+good), 401},
		{"the inner header", at("/?apikey=", "X-Gatehouse-Key: Basic "+good), 401},
		{"a wrong one in front of a cookie", at("/?apikey=x", "Cookie: key="+good), 401},
		{"a cookie whose name ends so", at("/", "Cookie: xkey="+good), 401},
		{"in the value of a cookie", at("/", "Cookie: a=key="+good), 401},
		{"in a quoted cookie with a semicolon", at("/", `Cookie: a="; key=`+good+`"`), 200},
		{"many parameters", at("/?" + strings.Repeat("a=%61&", 3000) + "apikey=" + good), 200},
		{"many cookies", at("/", "Cookie: "+strings.Repeat("a=1; ", 3000)+"key="+good), 200},
		{"long spaces among cookies", at("/", "Cookie: a"+strings.Repeat(" ", 30000)+"; key="+good), 200},
		{"long signs in the query", at("/?" + strings.Repeat("%", 20000) + "&apikey=" + good), 200},
	}
}

// passwordTries returns requests to a service for the user ann.
func passwordTries() []credentialTry {
	good := encoded("ann:correct-horse-battery")
	basic := func(text string) []string { return []string{"Authorization: Basic " + encoded(text)} }
	return []credentialTry{
		{"a user", []string{"Authorization: Basic " + good}, 200},
		{"a user, in a header of other letters", []string{"AUTHORIZATION: Basic " + good}, 200},
		{"none", nil, 401},
		{"an empty one", []string{"Authorization: "}, 401},
		{"nothing behind the scheme", []string{"Authorization: Basic "}, 401},
		{"the scheme alone", []string{"Authorization: Basic"}, 401},
		{"a tab behind the scheme", []string{"Authorization: Basic\t" + good}, 401},
		{"two spaces behind the scheme", []string{"Authorization: Basic  " + good}, 401},
		{"another scheme that begins so", []string{"Authorization: BasicX " + good}, 401},
		{"the scheme in small letters", []string{"Authorization: basic " + good}, 401},
		{"another scheme", []string{"Authorization: Digest " + good}, 401},
		{"without a scheme", []string{"Authorization: " + good}, 401},
		{"twice", []string{"Authorization: Basic " + good, "Authorization: Basic " + good}, 401},
		{"a bad one first", []string{"Authorization: Basic " + encoded("ann:x"), "Authorization: Basic " + good}, 401},
		{"a bad one last", []string{"Authorization: Basic " + good, "Authorization: Basic " + encoded("ann:x")}, 401},
		{"two in one header", []string{"Authorization: Basic " + encoded("ann:x") + ", Basic " + good}, 401},
		{"elsewhere", []string{"Proxy-Authorization: Basic " + good, "X-Authorization: Basic " + good}, 401},
		{"in the header of keys", []string{"X-Gatehouse-Key: Basic " + good, "X-Api-Key: " + good}, 401},
		{"another password", basic("ann:correct-horse-batterz"), 401},
		{"a part of the password", basic("ann:correct-horse"), 401},
		{"more than the password", basic("ann:correct-horse-battery "), 401},
		{"a line feed behind it", basic("ann:correct-horse-battery\n"), 401},
		{"a zero byte behind it", basic("ann:correct-horse-battery\x00"), 401},
		{"the password in other letters", basic("ann:Correct-Horse-Battery"), 401},
		{"the name in other letters", basic("ANN:correct-horse-battery"), 401},
		{"a space behind the name", basic("ann :correct-horse-battery"), 401},
		{"no name", basic(":correct-horse-battery"), 401},
		{"no password", basic("ann:"), 401},
		{"no colon", basic("anncorrect-horse-battery"), 401},
		{"the hash", basic("ann:" + sha("correct-horse-battery")), 401},
		{"nobody", basic("-:"), 401},
		{"the user of another service", basic("eve:another-long-word"), 401},
		{"a line of a list", basic("eve:x\nann:correct-horse-battery"), 401},
		{"the holder of a key", basic("partners/web:web"), 401},
		{"not encoded", []string{"Authorization: Basic ann:correct-horse-battery"}, 401},
		{"with text behind it", []string{"Authorization: Basic " + good + " x"}, 401},
		{"with padding in the middle", []string{"Authorization: Basic " + encoded("ann:") + good}, 401},
		{"who says who it is", []string{"X-Client: ann"}, 401},
		{"another method by a header", []string{"X-HTTP-Method-Override: OPTIONS"}, 401},
		{"a long one", basic("ann:" + strings.Repeat("x", 20000)), 401},
		{"one that is longer than headers may be", basic("ann:" + strings.Repeat("x", 70000)), 431},
	}
}

// sha returns a text as Envoy stores it.
func sha(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
	return "{SHA}" + base64.StdEncoding.EncodeToString(sum[:])
}

var _ = Describe("Credentials", func() {
	// hold tries everything in a table at a service; the backend learns only which client was allowed.
	hold := func(ctx SpecContext, host, client string, tries []credentialTry) {
		GinkgoHelper()
		for _, t := range some(60, tries) {
			target, headers := "GET / HTTP/1.1", t.headers
			if len(headers) > 0 && strings.HasPrefix(headers[0], "GET ") {
				target, headers = headers[0], headers[1:]
			}
			a := gw.raw(ctx, append([]string{target, "Host: " + host, "X-Client: root", "x-client: boss"}, headers...)...)
			Expect(a.Status).To(Equal(t.status), t.what)
			if t.status != 200 {
				Expect(a.Body).NotTo(ContainSubstring("ann"), t.what)
				continue
			}
			var echo testkit.Echo
			Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed())
			Expect(echo.Headers["X-Client"]).To(Equal([]string{client}), t.what)
			for _, header := range []string{"Authorization", "X-Api-Key", "X-Gatehouse-Key"} {
				Expect(echo.Headers).NotTo(HaveKey(header), t.what)
			}
			Expect(echo.Path+echo.Headers.Get("Cookie")).NotTo(ContainSubstring("key="), t.what)
		}
	}

	It("that are API keys are accepted only as they were created", func(ctx SpecContext) {
		for _, set := range []string{"partners", "partners2", "staff"} {
			gw.add(ctx, "/keyset", "Keyset_name="+set)
			for _, name := range []string{"web", "mobile"} {
				gw.add(ctx, "/keyset/"+set+"/key", "Key_name="+name, "Key_hash="+sha(name))
			}
			gw.add(ctx, "/filter", "Filter_name=keys-"+set, "Filter_type=http_filter_apikey", `Filter_config={"keys":"`+set+`"}`)
			gw.addService(ctx, "keyed-"+set, "keyed-"+set+".test")
			gw.link(ctx, "/service/keyed-"+set+"/filter/keys-"+set)
			gw.link(ctx, "/proxy/gw/service/keyed-"+set+"?wait=applied")
		}
		hold(ctx, "keyed-partners.test", "partners/web", keyTries())
		gw.add(ctx, "/filter", "Filter_name=keys-elsewhere", "Filter_type=http_filter_apikey", `Filter_config={"keys":"partners","from":[{"query":"apikey"},{"cookie":"key"}]}`)
		gw.addService(ctx, "elsewhere", "elsewhere.test")
		gw.link(ctx, "/service/elsewhere/filter/keys-elsewhere")
		gw.link(ctx, "/proxy/gw/service/elsewhere?wait=applied")
		hold(ctx, "elsewhere.test", "partners/web", keyPlaceTries())
	}, SpecTimeout(2*time.Minute))

	It("that are valid API keys are never refused while their filter comes and goes, also while a route waits", func(ctx SpecContext) {
		silent, err := net.Listen("tcp", "127.0.0.1:0") // never answers a health check
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(silent.Close)
		_, port, err := net.SplitHostPort(silent.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		gw.add(ctx, "/upstream", "Upstream_name=silent", "Upstream_ip=127.0.0.1", "Upstream_port="+port, "Upstream_hc_path=/", "Upstream_hc_timeoutseconds=60")
		gw.add(ctx, "/keyset", "Keyset_name=busy")
		gw.add(ctx, "/keyset/busy/key", "Key_name=web", "Key_hash="+sha("web"))
		gw.add(ctx, "/filter", "Filter_name=keys-busy", "Filter_type=http_filter_apikey", `Filter_config={"keys":"busy"}`)
		gw.addService(ctx, "busy", "busy.test")
		gw.link(ctx, "/proxy/gw/service/busy?wait=applied")
		traffic := testkit.StartTraffic(testkit.TrafficOptions{
			Addr: fmt.Sprintf("127.0.0.1:%d", gw.port), Host: "busy.test", Lines: []string{"X-Api-Key: " + encoded("busy/web:web")}, Rate: 400,
		})
		DeferCleanup(traffic.Stop)
		call := func(ctx context.Context, do func(context.Context, string) (testkit.Answer, error), path string, status int) {
			GinkgoHelper()
			a, err := do(ctx, path)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(status), a.Body)
		}
		post := func(ctx context.Context, path string) (testkit.Answer, error) { return gw.API.Post(ctx, path) }
		const filter, upstream = "/service/busy/filter/keys-busy", "/service/busy/route/root/upstream/silent"
		for range 3 {
			By("a filter that is detached")
			call(ctx, post, filter+"?wait=applied", http.StatusCreated)
			call(ctx, gw.API.Delete, filter+"?wait=applied", http.StatusOK)
			By("a filter that is detached while the route waits for an upstream")
			call(ctx, post, filter+"?wait=applied", http.StatusCreated)
			call(ctx, post, upstream, http.StatusCreated)
			call(ctx, gw.API.Delete, filter, http.StatusOK)
			sent := traffic.Report().Requests
			Eventually(func() int { return traffic.Report().Requests }).WithContext(ctx).Should(BeNumerically(">", sent+200))
			call(ctx, gw.API.Delete, upstream+"?wait=applied", http.StatusOK)
		}
		report := traffic.Stop()
		Expect(report.Failures).To(BeEmpty(), report.String())
	}, SpecTimeout(2*time.Minute))

	It("that are passwords are accepted only as they were set", func(ctx SpecContext) {
		for name, config := range map[string]string{
			"users":  `{"users":[{"name":"ann","password":"correct-horse-battery"}]}`,
			"others": `{"users":[{"name":"eve","password":"another-long-word"}]}`,
		} {
			gw.add(ctx, "/filter", "Filter_name="+name, "Filter_type=http_filter_basicauth", "Filter_config="+config)
			gw.addService(ctx, name, name+".test")
			gw.link(ctx, "/service/"+name+"/filter/"+name)
			gw.link(ctx, "/proxy/gw/service/"+name+"?wait=applied")
		}
		hold(ctx, "users.test", "ann", passwordTries())
	}, SpecTimeout(2*time.Minute))
})
