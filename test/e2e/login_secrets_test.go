package e2e_test

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

const (
	markerText   = "marker-client-secret-as-text-7Qx"
	markerNamed  = "marker-client-secret-by-name-2Zp"
	markerCookie = "bWFya2VyLWNvb2tpZS1zZWNyZXQtb2YtMzItYnl0ZXM="
)

// encodings returns the ways in which a secret may be written.
func encodings(secret string) []string {
	return []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret))}
}

// hmacKey returns the key of the cookies of a login, as an Envoy receives it.
func hmacKey(login, client, provider string) string {
	GinkgoHelper()
	key, err := hkdf.Key(sha256.New, []byte(markerCookie), nil, strings.Join([]string{"gatehouse login cookies", login, client, provider}, "\x00"), sha256.Size)
	Expect(err).NotTo(HaveOccurred())
	return hex.EncodeToString(key)
}

// sessionSecrets returns what only a browser and Envoy may have of a login: the code, the
// cookies, and the tokens in them, which this backend receives.
func sessionSecrets(b *testkit.Browser, back testkit.Visit) (list []string) {
	GinkgoHelper()
	for _, v := range b.Visits {
		if code := v.URL.Query().Get("code"); code != "" {
			list = append(list, code)
		}
		for _, c := range v.Header.Values("Set-Cookie") {
			pair, _, _ := strings.Cut(c, ";")
			if name, value, _ := strings.Cut(pair, "="); len(value) > 16 && !strings.HasPrefix(name, "_") {
				list = append(list, value)
			}
		}
	}
	var seen testkit.Echo
	Expect(json.Unmarshal([]byte(back.Body), &seen)).To(Succeed(), back.Body)
	tokens := 0
	for pair := range strings.SplitSeq(strings.Join(seen.Headers["Cookie"], "; "), "; ") {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "BearerToken") || strings.HasPrefix(name, "IdToken") {
			list, tokens = append(list, value), tokens+1
		}
	}
	Expect(tokens).To(Equal(2), "forward_tokens tells the backend both: %v", seen.Headers)
	return list
}

var _ = DescribeTable("No secret of a login can be read anywhere", func(ctx SpecContext, onPostgres bool) {
	s, base, temp, dump := searched(onPostgres, "--access-log", "json")
	g := s.Gatehouse
	s.serve("shop", "shop.test", "shop.test")
	l := loginSite{secured: s.secured, address: "https://shop.test:" + strconv.Itoa(s.httpsPort)}
	var err error
	l.idp, err = testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), s.authority, testkit.OIDCSettings{
		Clients: []testkit.OIDCClient{{ID: "shop", Secret: markerText, RedirectURIs: []string{l.address + "/callback"}}},
		Users:   map[string]testkit.OIDCUser{"anna": {Password: "pw", Claims: map[string]any{"email": "anna@shop.test"}}},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(l.idp.Kill()).To(Succeed()) })
	l.trust(l.idp)
	_, stopEvents := eventsOf(g.API)
	collector, err := testkit.StartCollector()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(collector.Close)
	s.form(201, "POST", "/upstream", "Upstream_name", "grpc", "Upstream_ip", "127.0.0.1", "Upstream_protocol", "h2c", "Upstream_port", strconv.Itoa(collector.GRPC))
	for name, config := range map[string]string{"lines": `{}`, "als": `{"upstream":"grpc","protocol":"als","discloses":["query","referer","metadata"]}`} {
		s.form(201, "POST", "/globalconfig", "globalconfig_name", name, "globalconfig_type", "globalconfig_accesslog", "config", config)
	}

	By("writing them in all ways, including ways that are refused")
	s.form(201, "POST", "/secret", "Secret_name", "cookies", "Secret_value", markerCookie)
	s.form(201, "POST", "/secret", "Secret_name", "client", "Secret_value", markerNamed)
	config := func(client string) string {
		_, rest, _ := strings.Cut(l.oidcFilter("CLIENT", `"forward_tokens": true`, `"issuer": "`+l.idp.Issuer+`"`), "=")
		return strings.ReplaceAll(rest, `"CLIENT"`, client)
	}
	s.form(201, "POST", "/filter", "Filter_name", "staff", "Filter_type", "http_filter_oidc", "Filter_config", config(`"wrong-`+markerText+`"`))
	s.form(201, "POST", "/filter", "Filter_name", "named", "Filter_type", "http_filter_oidc", "Filter_config", config(`{"secret":"client"}`))
	s.form(400, "POST", "/filter", "Filter_name", "bad", "Filter_type", "http_filter_oidc", "Filter_config", strings.ReplaceAll(config(`"`+markerText+`"`), "client_id", "client_idd"))
	s.form(201, "POST", "/service/shop/filter/staff?wait=applied")
	failed := l.browser()
	Expect(l.logIn(ctx, failed).Status).To(Equal(http.StatusUnauthorized))
	s.form(200, "PATCH", "/filter/staff?wait=applied", "Filter_config", config(`"`+markerText+`"`))
	b := l.browser()
	back := l.logIn(ctx, b)
	Expect(back.Status).To(Equal(http.StatusOK), back.Body)
	tokens := sessionSecrets(b, back)
	for _, fault := range []testkit.OIDCFault{
		{Status: 200, Body: `{"access_token":7,"id_token":"marker-token-in-answer"}`}, {Status: 400, Body: `{"error":"marker-token-in-answer"}`},
	} {
		Expect(l.idp.Change(ctx, testkit.OIDCSettings{Faults: map[string]testkit.OIDCFault{"/token": fault}})).To(Succeed())
		page := l.logIn(ctx, l.browser())
		Expect(page.Status).To(Equal(http.StatusUnauthorized))
		s.answers[fmt.Sprint("page for ", fault.Status)] = page.Body + fmt.Sprint(page.Header)
	}
	Expect(l.idp.Change(ctx, testkit.OIDCSettings{Faults: map[string]testkit.OIDCFault{"/token": {}}})).To(Succeed())
	_, err = l.browser().Open(ctx, l.address+"/callback?error=access_denied&error_description=marker-token-in-answer&state=x")
	Expect(err).NotTo(HaveOccurred())
	Eventually(l.told).WithArguments("/service/shop").Should(ContainElement(ContainSubstring("(access_denied)")))
	s.form(201, "POST", "/service/deepcopy/shop/shop2")

	By("reading everything")
	places := maps.Clone(s.answers)
	maps.Copy(places, answersOf(g.API, append(readsOf(g.API, map[string][]string{
		"upstream": {"blue", "idp"}, "service": {"shop", "shop2"}, "route": {"root"}, "proxy": {"gw"}, "filter": {"staff", "named"}, "globalconfig": {"x"},
		"secret": {"client", "cookies"}, "token": {"x"}, "asset": {"x"}, "revision": revisionsOf(g.API),
	}), "/proxy/gw/explain?url="+l.address+"/deep", "/proxy/gw/xds?type=secret", "/filter?status=true", "/service?status=true")))
	for _, args := range [][]string{{"get", "filter", "staff"}, {"get", "secret", "client"}, {"dump"}, {"status"}, {"history"}, {"explain", "gw", l.address + "/deep"}, {"login", "test", "shop"}} {
		_, out, errs := cliOf(g).run(args...)
		places["gatehouse "+strings.Join(args, " ")] = out + errs
	}
	maps.Copy(places, adminTexts("admin socket", adminOf(g)))
	maps.Copy(places, adminTexts("admin port", g.Admin))
	maps.Copy(places, filesIn(base))
	maps.Copy(places, filesIn(temp))
	maps.Copy(places, dump())
	maps.Copy(places, processTexts(g))
	places["events"] = stopEvents()
	Expect(places["events"]).To(ContainSubstring("wrong_client_secret"))
	Eventually(g.Stdout.String).Should(ContainSubstring(`"path":"/callback"`))
	Eventually(entry).WithArguments(collector, "/callback").ShouldNot(BeEmpty())
	Expect(g.Stop(limit())).To(BeZero())
	places["access log service"] = besidesConsent(collector)
	places["log"], places["access log"] = g.Stderr.String(), g.Stdout.String()
	Expect(places["log"]).To(ContainSubstring(`"level":"DEBUG"`))
	for place, text := range filesIn(base) {
		places[place+" at the end"] = text
	}
	for what, markers := range map[string][]string{
		"client secret": append(encodings(markerText), encodings(markerNamed)...), "cookie secret": encodings(markerCookie), "tokens": append(tokens, "marker-token-in-answer"),
		"HMAC key": {hmacKey("filter/staff", "shop", l.idp.Issuer), hmacKey("filter/named", "shop", l.idp.Issuer)},
	} {
		AddReportEntry("searched", fmt.Sprintf("%d places for %d forms of %s", len(places), len(markers), what))
		Expect(leaks(places, markers)).To(BeEmpty(), what)
	}
},
	Entry("with SQLite", false),
	Entry("with Postgres", true),
)
