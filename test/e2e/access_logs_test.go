package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// log sets an access log of the proxy, and returns when it is live.
func (t traced) log(name string, config map[string]any) {
	GinkgoHelper()
	text, err := json.Marshal(map[string]any{"globalconfig_type": "globalconfig_accesslog", "config": config})
	Expect(err).NotTo(HaveOccurred())
	a, err := t.api.Do(limit(), http.MethodPut, "/globalconfig/"+name+"?wait=applied", "application/json", string(text))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
}

// line returns what a collector got about the request with a path; nil if nothing.
func (t traced) line(path string) *testkit.LogLine {
	for _, l := range t.collector.Lines() {
		if strings.Contains(l.Body, path+" ") {
			return &l
		}
	}
	return nil
}

var _ = Describe("The access logs of a proxy", func() {
	DescribeTable("go to a collector, with the fields that are chosen and no secret, and with the trace of the request", func(upstream string) {
		t := newTraced()
		t.trace(map[string]any{"upstream": "grpc", "service_name": "edge"})
		issuer := testkit.NewTokenIssuer("https://issuer.test", "a")
		post(t.api, "/filter", "Filter_name=tokens", "Filter_type=http_filter_jwt",
			`Filter_config={"issuer":"https://issuer.test","jwks":`+issuer.JWKS()+`,"from":{"query":"access"}}`)
		post(t.api, "/service/shop/filter/tokens")
		t.log("all", map[string]any{
			"upstream": upstream, "omit": []string{"user_agent", "client"}, "rename": map[string]string{"duration_ms": "latency"},
			"fields": []any{
				map[string]any{"name": "team", "value": "100%REQ(cookie)%"}, map[string]any{"name": "tenant", "header": "x-tenant"},
				map[string]any{"name": "backend", "response_header": strings.ToLower(testkit.BackendHeader)}, map[string]any{"name": "role", "claim": "realm.role"},
			},
		})
		token := issuer.Token(map[string]any{"sub": "ann", "realm": map[string]any{"role": "admin"}})
		a := t.get("shop.example", "/line?access="+token, "X-Tenant: acme", "Cookie: session=secret-of-the-cookie", "Authorization: Bearer secret-of-the-header")
		Expect(a.Status).To(Equal(http.StatusOK))
		Eventually(t.line).WithArguments("/line").ShouldNot(BeNil())
		l := t.line("/line")
		Expect(l.Service).To(Equal("gw"))
		Expect(l.Body).To(Equal("GET shop.example/line 200"))
		Expect(l.Fields).To(And(HaveKeyWithValue("team", "100%REQ(cookie)%"), HaveKeyWithValue("tenant", "acme"), HaveKeyWithValue("backend", "blue"),
			HaveKeyWithValue("role", "admin"), HaveKeyWithValue("subject", "ann"), HaveKey("latency"), HaveKeyWithValue("service", "shop")))
		Expect(l.Fields).NotTo(Or(HaveKey("duration_ms"), HaveKey("user_agent"), HaveKey("client")))
		spans := t.spansOf("/line", 1)
		Expect(l.Trace).To(Equal(spans[0].Trace))
		Expect(l.Fields).To(HaveKeyWithValue("trace_id", spans[0].Trace))
		Expect(fmt.Sprint(t.collector.Lines(), t.collector.Spans())).NotTo(Or(ContainSubstring("secret-of"), ContainSubstring(token)))
	},
		Entry("over gRPC", "grpc"),
		Entry("over HTTP", "http"),
	)

	It("have the requests that are chosen, and replace the log of the setting", func() {
		g, gw, _ := shop("--access-log", "json")
		t := traced{gateway: gw}
		t.log("bad", map[string]any{"only": map[string]any{"status_from": 500, "slower_than": "300ms"}, "fields": []any{map[string]any{"name": "log", "value": "bad"}}})
		t.log("none", map[string]any{"only": map[string]any{"percent": 0.0001}})
		gw.get("shop.example", "/good")
		addRoute(gw.api, "shop", "empty", "/bad", "")
		Eventually(gw.answers).WithArguments("shop.example", "/bad").Should(Equal("503"))
		gw.get("shop.example", "/slow?delay=400ms")
		for _, path := range []string{"/bad", "/slow"} {
			_, fields := lineOf(g, path)
			Expect(fields).To(HaveKeyWithValue("log", "bad"))
		}
		for _, l := range g.Stdout.Lines() {
			Expect(l).NotTo(ContainSubstring(`"path":"/good"`))
		}
	})

	It("cost no request while the collector is away, hangs and comes back", func() {
		t := newTraced()
		t.log("all", map[string]any{"upstream": "grpc"})
		t.get("shop.example", "/before")
		Eventually(t.line).WithArguments("/before").ShouldNot(BeNil())
		traffic, stop := t.traffic("shop.example", 500)
		more := func() { await(traffic, 1000) }
		t.collector.Hang()
		more()
		Expect(t.collector.Close()).To(Succeed())
		more()
		Expect(t.collector.Start()).To(Succeed())
		more()
		stop()
		t.get("shop.example", "/after")
		Eventually(t.line).WithArguments("/after").ShouldNot(BeNil())
		Expect(read(adminOf(t.plane), "/stats?filter=logs_dropped")).To(MatchRegexp(`^access_logs[.]open_telemetry_access_log[.]logs_dropped: [1-9]`))
	})

	It("are refused with what is wrong", func() {
		t := newTraced()
		a, err := t.api.Do(limit(), http.MethodPost, "/globalconfig", "application/json",
			`{"globalconfig_name":"logs","globalconfig_type":"globalconfig_accesslog","config":{"upstream":"grpc","omit":["color"],"rename":{"path":"service","nothing":"x"},
			"fields":[{"name":"a","header":"Referer"},{"name":"b","claim":"a%b"},{"name":"c","value":"1","claim":"x"}],"only":{"status_from":99,"slower_than":"1us","percent":101}}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusBadRequest))
		Expect(fieldsOf(a.Body)).To(Equal([]string{
			"config.fields[0].header", "config.fields[1].claim", "config.fields[2]", "config.omit[0]", "config.only.percent", "config.only.slower_than",
			"config.only.status_from", "config.rename", "config.rename.path",
		}), a.Body)
		for config, fields := range map[string][]string{
			`{"text":"{path} {colour}","upstream":"grpc","omit":["sni"],"rename":{"path":"url"},"always":true,"attached_only":true}`: {
				"config.attached_only", "config.omit", "config.rename", "config.text", "config.text",
			},
			`{"text":"{path"}`: {"config.text"},
			`{"text":1}`:       {"config.text"},
			`{"always":"yes"}`: {"config.always"},
		} {
			a, err := t.api.Do(limit(), http.MethodPost, "/globalconfig", "application/json",
				`{"globalconfig_name":"logs","globalconfig_type":"globalconfig_accesslog","config":`+config+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusBadRequest))
			Expect(fieldsOf(a.Body)).To(Equal(fields), a.Body)
		}
	})
})
