package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestPolicies(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "Policies")
}

// world is a gateway with two services. shop.test has the routes /shop to a backend and
// /empty, which answers 503 by itself; moved.test sends clients to HTTPS.
type world struct {
	// green is behind an upstream that is on no route.
	green      *testkit.Backend
	api, admin testkit.API
	port       int
	// auth is that of startAuth, processor that of startProcessor.
	auth      *testkit.AuthServer
	processor *testkit.Processor
}

func startBackend(name string) *testkit.Backend {
	GinkgoHelper()
	b, err := testkit.StartBackend(name, testkit.BackendOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Close)
	return b
}

func limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	DeferCleanup(cancel)
	return ctx
}

// newWorld runs the gateway, with the filter f of the type, which is not attached.
func newWorld(p policy) *world {
	GinkgoHelper()
	blue, green := startBackend("blue"), startBackend("green")
	var err error
	var ports [2]int
	for i := range ports {
		ports[i], err = testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
	}
	args := append([]string{
		"standalone", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0",
		"--admin-addr", "127.0.0.1:0", "--http-port", strconv.Itoa(ports[0]), "--https-port", strconv.Itoa(ports[1]),
	}, p.flags...)
	g, err := testkit.StartGatehouse(limit(), nil, args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(g.Stop(ctx)).To(BeZero(), g.Stderr.String()) }, NodeTimeout(time.Minute))
	Expect(g.WaitReady(limit())).To(Succeed())
	Eventually(g.Records).WithArguments("envoy is ready").ShouldNot(BeEmpty())
	socket, _ := g.Records("envoy is ready")[0]["admin_socket"].(string)
	w := &world{green: green, api: g.API, admin: testkit.API{URL: "http://envoy", Socket: socket}, port: ports[0]}
	w.post("/upstream", "Upstream_name=blue", "Upstream_ip="+blue.IP, "Upstream_port="+strconv.Itoa(blue.Port))
	w.post("/upstream", "Upstream_name=green", "Upstream_ip="+green.IP, "Upstream_port="+strconv.Itoa(green.Port))
	w.post("/proxy", "Name=gw")
	for _, name := range []string{"shop", "moved"} {
		w.post("/service", "Service_Name="+name, "fqdn="+name+".test", map[string]string{"shop": "Https=both", "moved": "Https=redirect"}[name])
		w.post("/service/"+name+"/route", "Route_Name=root", "Route_prefix=/shop")
		w.post("/service/" + name + "/route/root/upstream/blue")
		w.post("/proxy/gw/service/" + name)
	}
	if p.given != nil {
		p.given(w)
	}
	w.post("/filter", "Filter_name=f", "Filter_type="+p.kind, "Filter_config="+p.config)
	w.post("/filter", "Filter_name=g", "Filter_type="+model.ShortType(p.kind), "Filter_config="+p.changed)
	w.post("/service/shop/route?wait=applied", "Route_Name=empty", "Route_prefix=/empty")
	return w
}

// post makes a call that must create something; with wait=applied, everywhere.
func (w *world) post(path string, fields ...string) {
	GinkgoHelper()
	a, err := w.api.Post(limit(), path, fields...)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusCreated), "POST %s: %s", path, a.Body)
}

func (w *world) attach(links ...string) {
	GinkgoHelper()
	for _, link := range links {
		w.post(link + "?wait=applied&timeout=30s")
	}
}

func (w *world) detach(links ...string) {
	GinkgoHelper()
	for _, link := range links {
		a, err := w.api.Delete(limit(), link+"?wait=applied&timeout=30s")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), "DELETE %s: %s", link, a.Body)
	}
}

// configure replaces the configuration of f.
func (w *world) configure(config string) {
	GinkgoHelper()
	a, err := w.api.Post(limit(), "/filter/f/config?wait=applied&timeout=30s", "Filter_config="+config)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
}

// exempt makes the route of shop exempt from filters; empty means from none.
func (w *world) exempt(names string) {
	GinkgoHelper()
	config := "{}"
	if names != "" {
		config = `{"exempt":{` + names + `}}`
	}
	a, err := w.api.Do(limit(), http.MethodPatch, "/service/shop/route/root?wait=applied&timeout=30s", "application/json", `{"Route_config":`+config+`}`)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
}

// read makes a call of the API and reads the list in its answer.
func (w *world) read(path, key string, into any) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, err := w.api.Get(ctx, path)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	var found struct{ Data map[string]json.RawMessage }
	Expect(json.Unmarshal([]byte(a.Body), &found)).To(Succeed())
	Expect(json.Unmarshal(found.Data[key], into)).To(Succeed())
}

// listeners returns the counters of Envoy that increase with any change of a listener.
func (w *world) listeners() []string {
	GinkgoHelper()
	a, err := w.admin.Get(limit(), "/stats?filter=^listener_manager[.]listener_(added|modified|removed|in_place_updated|create_failure)")
	Expect(err).NotTo(HaveOccurred())
	return regexp.MustCompile(`(?m)^listener_manager.*$`).FindAllString(a.Body, -1)
}

// reasons are how many requests the Envoy has refused, by reason.
func (w *world) reasons() map[string]int {
	GinkgoHelper()
	a, err := w.admin.Get(limit(), "/stats/prometheus?filter=^gatehouse[.]refusals")
	Expect(err).NotTo(HaveOccurred())
	found := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^envoy_gatehouse_refusals\{.*reason="(\w+)"\} (\d+)$`).FindAllStringSubmatch(a.Body, -1) {
		n, err := strconv.Atoi(m[2])
		Expect(err).NotTo(HaveOccurred())
		found[m[1]] += n
	}
	return found
}

func (w *world) send(r request) answer { return sendTo(w.port, r) }

func sendTo(port int, r request) answer {
	GinkgoHelper()
	dialer := &net.Dialer{}
	if r.from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(r.from)}
	}
	client := &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	r = r.complete()
	req, err := http.NewRequestWithContext(context.Background(), r.method, fmt.Sprintf("http://127.0.0.1:%d%s", port, r.path), strings.NewReader(r.body))
	Expect(err).NotTo(HaveOccurred())
	req.Host = r.host
	for _, h := range r.header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := client.Do(req)
	Expect(err).NotTo(HaveOccurred(), r.what)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred(), r.what)
	return answerOf(resp.StatusCode, resp.Header, body)
}

// complete sets the defaults of a request.
func (r request) complete() request {
	for _, f := range []struct {
		to   *string
		text string
	}{{&r.method, http.MethodGet}, {&r.host, "shop.test"}, {&r.path, "/shop"}} {
		if *f.to == "" {
			*f.to = f.text
		}
	}
	return r
}

// explained returns the status that explain predicts if a backend answers 200, and the body of the
// gateway's own answer, if explain shows it. unknown are the filters whose effect it does not know.
func (w *world) explained(r request) (status int, body string, unknown []string) {
	GinkgoHelper()
	r = r.complete()
	query := url.Values{"method": {r.method}, "url": {"http://" + r.host + r.path}, "header": r.header}
	if r.body != "" {
		query.Add("header", fmt.Sprint("Content-Length: ", len(r.body)))
	}
	if r.from != "" {
		query.Set("address", r.from)
	}
	var list []struct {
		Status  int      `json:"status"`
		Code    string   `json:"code"`
		Body    string   `json:"body"`
		Unknown []string `json:"unknown_filters"`
	}
	w.read("/proxy/gw/explain?"+query.Encode(), "core_db_explain", &list)
	Expect(list).To(HaveLen(1))
	if list[0].Code == "forwarded" {
		return http.StatusOK, "", list[0].Unknown
	}
	if r.method == http.MethodHead {
		return list[0].Status, "", list[0].Unknown
	}
	return list[0].Status, list[0].Body, list[0].Unknown
}
