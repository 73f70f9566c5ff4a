package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// logins is how often a login is added, changed or removed: GATEHOUSE_TEST_LOGINS, or a
// number that suits a run with the other tests.
func logins() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_LOGINS")); err == nil {
		return n
	}
	return 30
}

// loginKills is the number of changes after which the control plane is killed again.
const loginKills = 40

// outcome is an answer to a request without a session: its kind and, for a redirect to a
// login, the client, scopes and redirect_uri.
type outcome struct{ what, client, scope, redirect string }

// outcomeOf returns the kind of an answer. For another redirect it is the complete answer.
func outcomeOf(e testkit.Exchange, issuer string) outcome {
	to, err := url.Parse(e.Location)
	switch {
	case e.Status == http.StatusOK && e.Backend == "blue":
		return outcome{what: "open"}
	case e.Status == http.StatusNotFound && e.Backend == "":
		return outcome{what: "absent"}
	case e.Status == http.StatusFound && err == nil && strings.HasPrefix(e.Location, issuer+"/auth?"):
		q := to.Query()
		return outcome{"login", q.Get("client_id"), q.Get("scope"), q.Get("redirect_uri")}
	}
	return outcome{what: fmt.Sprintf("status %d of %q to %q: %s", e.Status, e.Backend, e.Location, e.Body)}
}

// spell is a period in which an answer is right. A zero to means that it lasts.
type spell struct {
	outcome
	from, to time.Time
}

// visited is a host that is added and removed.
type visited struct {
	name, issuer, redirect string
	idp                    string // the part of the configuration that names the provider
	api                    testkit.API
	number                 int // of its filter
	config                 map[string]any

	mu     sync.Mutex
	spells []spell
}

// becomes makes a call that changes the answer; during the call both are right.
func (v *visited) becomes(next outcome, call func()) {
	v.mu.Lock()
	v.spells = append(v.spells, spell{outcome: next, from: time.Now()})
	v.mu.Unlock()
	call()
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.spells[:len(v.spells)-1] {
		if v.spells[i].to.IsZero() {
			v.spells[i].to = time.Now()
		}
	}
}

func (v *visited) judge(e testkit.Exchange) error {
	is := outcomeOf(e, v.issuer)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.spells {
		if s.outcome == is && !s.from.After(e.Done) && (s.to.IsZero() || !s.to.Before(e.Sent)) {
			return nil
		}
	}
	return fmt.Errorf("%s: %+v, sent %s, done %s, of %+v", v.name, is, e.Sent.Format(time.StampMicro), e.Done.Format(time.StampMicro), v.spells[max(0, len(v.spells)-3):])
}

// asking returns the answer of the login as it is configured.
func (v *visited) asking() outcome {
	scope := "openid"
	if more, _ := v.config["scopes"].([]string); len(more) > 0 {
		scope += " " + strings.Join(more, " ")
	}
	return outcome{"login", v.config["client_id"].(string), scope, v.redirect + v.config["redirect_uri"].(string)}
}

func (v *visited) filter() string { return fmt.Sprintf("%s-%d", v.name, v.number) }

// text returns the configuration of the filter.
func (v *visited) text() string {
	GinkgoHelper()
	text, err := json.Marshal(v.config)
	Expect(err).NotTo(HaveOccurred())
	return strings.Replace(string(text), "{", "{"+v.idp+",", 1)
}

// fresh makes the configuration of the next filter.
func (v *visited) fresh() {
	v.number++
	v.config = map[string]any{
		"client_id": fmt.Sprintf("%s-%d", v.name, v.number), "client_secret": "first", "cookie_secret": v.name, "redirect_uri": "/callback", "upstream": "idp",
	}
}

func (v *visited) addFilter() {
	GinkgoHelper()
	v.fresh()
	post(v.api, "/filter", "Filter_name="+v.filter(), "Filter_type=http_filter_oidc", "Filter_config="+v.text())
}

// change changes one field of the filter.
func (v *visited) change(field string, value any) {
	GinkgoHelper()
	v.config[field] = value
	v.becomes(v.asking(), func() { applied(v.api, http.MethodPatch, "/filter/"+v.filter(), "Filter_config="+v.text()) })
}

// document applies a document with the service and its filter.
func (v *visited) document() {
	GinkgoHelper()
	text, err := json.Marshal(map[string]any{
		"version":  1,
		"filters":  []map[string]any{{"filter_name": v.filter(), "filter_type": "http_filter_oidc", "filter_config": json.RawMessage(v.text())}},
		"services": []map[string]any{{"service_name": v.name, "fqdn": v.name + ".test", "filters": []string{v.filter()}, "routes": []map[string]any{{"route_name": "root", "route_prefix": "/", "upstreams": []string{"blue"}}}}},
	})
	Expect(err).NotTo(HaveOccurred())
	a, err := v.api.Do(limit(), http.MethodPut, "/config?wait=applied&timeout=20s", "application/json", string(text))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
}

// loginChange is one kind of change. The earlier answer is right until the call has
// returned, and the later one from the start of the call.
type loginChange struct {
	name string
	make func(*visited)
}

// loginChanges are in an order in which each can follow the one before, round and round.
//
//	                          before      after
//	service added             404         200
//	filter added              200         302 to the provider
//	client, scopes, redirect  302         302 with the new ones
//	secrets                   302         302
//	filter renamed            302         302 with another client
//	filter removed            302         200
//	service removed           200, 302    404
//	both added                404         302
func loginChanges() []loginChange {
	removed := func(v *visited) {
		v.becomes(outcome{what: "absent"}, func() { applied(v.api, http.MethodDelete, "/proxy/gw/service/"+v.name) })
		remove(v.api, "/service/"+v.name)
	}
	return []loginChange{
		{"service added", func(v *visited) {
			addService(v.api, v.name, v.name+".test", "blue")
			v.becomes(outcome{what: "open"}, func() { applied(v.api, http.MethodPost, "/proxy/gw/service/"+v.name) })
		}},
		{"filter added", func(v *visited) {
			v.addFilter()
			v.becomes(v.asking(), func() { applied(v.api, http.MethodPost, "/service/"+v.name+"/filter/"+v.filter()) })
		}},
		{"client changed", func(v *visited) { v.change("client_id", v.filter()+"-other") }},
		{"secret changed", func(v *visited) { v.change("client_secret", "second") }},
		{"scopes changed", func(v *visited) { v.change("scopes", []string{"email", "profile"}) }},
		{"redirect changed", func(v *visited) { v.change("redirect_uri", "/elsewhere/back") }},
		{"filter renamed", func(v *visited) {
			old := v.filter()
			v.fresh()
			v.becomes(v.asking(), v.document)
			remove(v.api, "/filter/"+old)
		}},
		{"cookie secret rotated", func(v *visited) {
			applied(v.api, http.MethodPatch, "/secret/"+v.name, "Secret_value="+strings.Repeat(strconv.Itoa(v.number%10), 40))
		}},
		{"filter removed", func(v *visited) {
			v.becomes(outcome{what: "open"}, func() { applied(v.api, http.MethodDelete, "/service/"+v.name+"/filter/"+v.filter()) })
			remove(v.api, "/filter/"+v.filter())
		}},
		{"service removed", removed},
		{"both added", func(v *visited) {
			v.fresh()
			v.becomes(v.asking(), func() {
				v.document()
				applied(v.api, http.MethodPost, "/proxy/gw/service/"+v.name)
			})
		}},
		{"both removed", func(v *visited) {
			removed(v)
			remove(v.api, "/filter/"+v.filter())
		}},
	}
}

// loginLoad is a control plane that can be killed, an Envoy with two workers, and an
// identity provider.
type loginLoad struct {
	secured
	args  []string
	envoy *testkit.Envoy
	idp   *testkit.OIDCProvider
}

func newLoginLoad(ctx SpecContext) *loginLoad {
	GinkgoHelper()
	authority, err := testkit.NewAuthority("test")
	Expect(err).NotTo(HaveOccurred())
	l := &loginLoad{args: []string{
		"serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", fmt.Sprintf("127.0.0.1:%d", freePort()), "--xds-addr", fmt.Sprintf("127.0.0.1:%d", freePort()),
	}}
	g := start(nil, l.args...)
	l.secured = secured{gateway{g.API, freePort()}, g, freePort(), authority}
	addUpstream(l.api, backend("blue"))
	post(l.api, "/proxy", "Name=gw", "Listen_ip=127.0.0.1", "Http_port="+strconv.Itoa(l.port), "Https_port="+strconv.Itoa(l.httpsPort))
	bootstrap, err := testkit.PrintBootstrap(limit(), "gw", g.XDSAddr, "--admin-addr", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	l.envoy, err = testkit.RunEnvoy(limit(), GinkgoT().TempDir(), bootstrap, "--concurrency", "2")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error {
		select {
		case <-l.envoy.Exited():
			AddReportEntry("Envoy has ended", l.envoy.Stderr.String())
		default:
		}
		return l.envoy.Kill()
	})
	clients := []testkit.OIDCClient{}
	for _, name := range []string{"verified", "trusted"} {
		clients = append(clients, testkit.OIDCClient{ID: name, Secret: "s3cret", RedirectURIs: []string{l.url(name, "/callback")}})
	}
	l.idp, err = testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), authority, testkit.OIDCSettings{
		Clients: clients, Users: map[string]testkit.OIDCUser{"anna": {Password: "pw"}}, TTL: map[string]int{"AccessToken": 36000, "IdToken": 36000},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(l.idp.Kill()).To(Succeed()) })
	l.trust(l.idp)
	post(l.api, "/secret", "Secret_name=cookies", "Secret_value="+cookieSecret)
	for name, provider := range l.providers() {
		l.serve(name, name+".test", name+".test")
		post(l.api, "/filter", "Filter_name="+name, "Filter_type=http_filter_oidc",
			`Filter_config={"client_id":"`+name+`","client_secret":"s3cret","cookie_secret":"cookies","upstream":"idp","redirect_uri":"/callback",`+provider+`}`)
		applied(l.api, http.MethodPost, "/service/"+name+"/filter/"+name)
	}
	l.serve("plain", "plain.test", "plain.test")
	return l
}

// providers returns the parts of configurations that name the provider, by what happens to
// the id_token.
func (l *loginLoad) providers() map[string]string {
	return map[string]string{
		"verified": `"issuer":"` + l.idp.Issuer + `"`,
		"trusted":  `"authorization_endpoint":"` + l.idp.Issuer + `/auth","token_endpoint":"` + l.idp.Issuer + `/token"`,
	}
}

func (l *loginLoad) host(service string) string {
	return service + ".test:" + strconv.Itoa(l.httpsPort)
}

func (l *loginLoad) url(service, path string) string { return "https://" + l.host(service) + path }

// logIn returns the header Cookie of a new session.
func (l *loginLoad) logIn(ctx context.Context, service string) string {
	GinkgoHelper()
	b := testkit.NewBrowser(l.authority)
	defer b.Close()
	page, err := b.Open(ctx, l.url(service, "/"))
	Expect(err).NotTo(HaveOccurred())
	back, err := b.LogIn(ctx, page, "anna", "pw")
	Expect(err).NotTo(HaveOccurred())
	Expect(back.Status).To(Equal(http.StatusOK), back.Body)
	Expect(back.Sent.Get("Cookie")).NotTo(BeEmpty())
	return back.Sent.Get("Cookie")
}

// steady is traffic to a host that stays, with one right answer.
func (l *loginLoad) steady(service, cookie string, right outcome) *testkit.Traffic {
	return testkit.StartTraffic(testkit.TrafficOptions{
		Addr: l.addr(), TLS: l.trusting(), Rate: 90, Connections: 4, Host: l.host(service), Cookie: cookie,
		Judge: func(e testkit.Exchange) error {
			if is := outcomeOf(e, l.idp.Issuer); is != right {
				return fmt.Errorf("%s: %+v, not %+v", service, is, right)
			}
			return nil
		},
	})
}

// replace kills the control plane, and restarts it.
func (l *loginLoad) replace() {
	GinkgoHelper()
	Expect(l.Kill()).To(Succeed())
	l.Gatehouse = start(nil, l.args...)
}

var _ = Describe("Login hosts that are added, changed and removed under 500 requests per second", func() {
	It("are answered correctly at any time, like the others; Envoy survives, and the listener remains", func(ctx SpecContext) {
		l := newLoginLoad(ctx)
		all := map[string]*testkit.Traffic{"plain": l.steady("plain", "", outcome{what: "open"})}
		for name := range l.providers() {
			cookie := l.logIn(ctx, name)
			all[name+" with a session"] = l.steady(name, cookie, outcome{what: "open"})
			all[name+" without"] = l.steady(name, "", outcome{"login", name, "openid", l.url(name, "/callback")})
		}
		var hosts []*visited
		for name, provider := range l.providers() {
			v := &visited{
				name: "guest-" + name, issuer: l.idp.Issuer, idp: provider, api: l.api, spells: []spell{{outcome: outcome{what: "absent"}}},
				redirect: fmt.Sprintf("http://guest-%s.test:%d", name, l.port),
			}
			post(l.api, "/secret", "Secret_name="+v.name, "Secret_value="+cookieSecret)
			all[v.name] = testkit.StartTraffic(testkit.TrafficOptions{
				Addr: fmt.Sprintf("127.0.0.1:%d", l.port), Rate: 25, Connections: 4, Host: fmt.Sprintf("%s.test:%d", v.name, l.port), Judge: v.judge,
			})
			hosts = append(hosts, v)
		}
		for _, t := range all {
			DeferCleanup(t.Stop)
		}
		before := listenerChanges(l.envoy.Admin)
		kinds, kills, began := map[string]int{}, 0, time.Now()
		changes := loginChanges()
		for i := range logins() {
			// One host is half a round ahead.
			v, change := hosts[i%2], changes[i/2%len(changes)]
			change.make(v)
			kinds[change.name]++
			if i%loginKills == loginKills/2 {
				kills++
				l.replace()
			}
			Expect(l.envoy.Exited()).NotTo(BeClosed(), "Envoy has ended at change %d: %s", i, change.name)
		}
		took := time.Since(began)
		requests := 0
		var failures []string
		for name, t := range all {
			r := t.Stop()
			requests += r.Requests
			AddReportEntry(name, r.String())
			for _, f := range r.Failures {
				failures = append(failures, fmt.Sprintf("%s at %s: %s", name, f.At, f.Reason))
			}
		}
		AddReportEntry("changes", fmt.Sprintf("%d in %s, the control plane killed %d times, %d requests: %v", logins(), took, kills, requests, kinds))
		Expect(failures).To(BeEmpty())
		Expect(listenerChanges(l.envoy.Admin)).To(Equal(before))
		for name := range l.providers() {
			l.logIn(ctx, name)
		}
	})
})
