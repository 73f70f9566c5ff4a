package e2e_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// traced is a gateway whose requests are traced.
type traced struct {
	gateway
	collector *testkit.Collector
	plane     *testkit.Gatehouse
}

// newTraced starts a gateway with the service shop and a collector.
func newTraced() traced {
	GinkgoHelper()
	g, gw, _ := shop("--access-log", "off")
	collector, err := testkit.StartCollector()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(collector.Close)
	post(gw.api, "/upstream", "Upstream_name=grpc", "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c", fmt.Sprint("Upstream_port=", collector.GRPC))
	post(gw.api, "/upstream", "Upstream_name=http", "Upstream_ip=127.0.0.1", fmt.Sprint("Upstream_port=", collector.HTTP))
	return traced{gw, collector, g}
}

// trace sets the configuration, and returns when it is live.
func (t traced) trace(config map[string]any) {
	GinkgoHelper()
	text, err := json.Marshal(map[string]any{"globalconfig_type": "globalconfig_tracing", "config": config})
	Expect(err).NotTo(HaveOccurred())
	a, err := t.api.Do(limit(), http.MethodPut, "/globalconfig/traces?wait=applied", "application/json", string(text))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
}

// await waits for more requests of a client.
func await(traffic *testkit.Traffic, more int) {
	GinkgoHelper()
	before := traffic.Report().Requests
	Eventually(func() int { return traffic.Report().Requests }).Should(BeNumerically(">", before+more))
}

// spansOf returns the spans of the request with a path, those of the gateway itself first.
func (t traced) spansOf(path string, want int) []testkit.Span {
	GinkgoHelper()
	find := func() (list []testkit.Span) {
		all := t.collector.Spans()
		isBelow := func(s testkit.Span) bool {
			return slices.ContainsFunc(all, func(o testkit.Span) bool { return o.ID == s.Parent })
		}
		for _, s := range all {
			if strings.HasSuffix(s.Tags["http.url"], path) && !isBelow(s) {
				list = append(list, s)
			}
		}
		for _, s := range all {
			if len(list) > 0 && s.Parent == list[0].ID {
				list = append(list, s)
			}
		}
		return list
	}
	Eventually(find).Should(HaveLen(want), path)
	return find()
}

// fieldsOf returns the fields that a problem names, sorted.
func fieldsOf(body string) (fields []string) {
	GinkgoHelper()
	var problem struct{ Errors []struct{ Field string } }
	Expect(json.Unmarshal([]byte(body), &problem)).To(Succeed())
	for _, e := range problem.Errors {
		fields = append(fields, e.Field)
	}
	slices.Sort(fields)
	return fields
}

var _ = Describe("Tracing", func() {
	DescribeTable("sends spans of a request and of its tries to a collector, which join the client's trace",
		func(upstream string) {
			t := newTraced()
			t.trace(map[string]any{"upstream": upstream, "service_name": "edge", "upstream_spans": true, "tags": []any{
				map[string]any{"name": "team", "value": "100%REQ(x)%"}, map[string]any{"name": "tenant", "header": "x-tenant"},
				map[string]any{"name": "backend", "response_header": strings.ToLower(testkit.BackendHeader)},
				map[string]any{"name": "absent", "header": "x-absent"},
			}})
			const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
			a := t.get("shop.example", "/joined?access_token=secret-of-the-query", "X-Tenant: acme",
				"Traceparent: 00-"+trace+"-"+parent+"-01", "Baggage: user=ann", "Authorization: Bearer secret-of-the-header")
			Expect(a.Status).To(Equal(http.StatusOK))
			spans := t.spansOf("/joined", 2)
			Expect(spans[0]).To(And(HaveField("Trace", trace), HaveField("Parent", parent), HaveField("Name", "GET root"), HaveField("Service", "edge")))
			Expect(spans[0].Tags).To(And(HaveKeyWithValue("team", "100%REQ(x)%"), HaveKeyWithValue("tenant", "acme"),
				HaveKeyWithValue("backend", "blue"), Not(HaveKey("absent")), HaveKeyWithValue("gatehouse.service", "shop"),
				HaveKeyWithValue("gatehouse.route", "root"), HaveKeyWithValue("http.url", "http://shop.example/joined"),
				HaveKeyWithValue("http.status_code", "200")))
			Expect(spans[1]).To(And(HaveField("Trace", trace), HaveField("Tags", HaveKeyWithValue("upstream_cluster.name", "blue"))))
			By("the backend's headers")
			Expect(a.Echo.Headers.Get("Baggage")).To(Equal("user=ann"))
			Expect(a.Echo.Headers.Get("Traceparent")).To(Equal("00-" + trace + "-" + spans[1].ID + "-01"))
			Expect(fmt.Sprint(t.collector.Spans())).NotTo(Or(ContainSubstring("secret-of"), ContainSubstring("access_token")))
		},
		Entry("over gRPC", "grpc"),
		Entry("over HTTP", "http"),
	)

	It("takes the configured share of requests, whatever the client decides, or as it decides", func() {
		t := newTraced()
		const sampled, not = "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Traceparent: 00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203331-00"
		t.trace(map[string]any{"upstream": "grpc", "sampling": 0, "force_header": "X-Trace"})
		t.get("shop.example", "/off")
		t.get("shop.example", "/not-forced", "X-Client-Trace-Id: 1")
		t.get("shop.example", "/forced", "X-Trace: 1")
		t.get("shop.example", "/both", "X-Trace: 1", not)
		t.get("shop.example", "/parent", sampled)
		t.spansOf("/forced", 1)
		t.spansOf("/parent", 1)
		t.trace(map[string]any{"upstream": "grpc", "sampling": 0, "parent": "ignore"})
		t.get("shop.example", "/ignored", sampled)
		t.trace(map[string]any{"upstream": "grpc"})
		backend := t.get("shop.example", "/parent-not", not).Echo.Headers
		Expect(backend.Get("Traceparent")).To(MatchRegexp("^00-0af7651916cd43dd8448eb211c80319d-[0-9a-f]{16}-00$"))
		t.get("shop.example", "/all")
		t.spansOf("/all", 1)
		for _, path := range []string{"/off", "/not-forced", "/both", "/ignored", "/parent-not"} {
			Expect(t.spansOf(path, 0)).To(BeEmpty())
		}

		By("10,000 requests")
		t.trace(map[string]any{"upstream": "grpc", "sampling": 10})
		traffic, stop := t.traffic("shop.example", 2000)
		Eventually(func() int { return traffic.Report().Requests }).Should(BeNumerically(">=", 10_000))
		stop()
		n := float64(traffic.Report().Requests)
		count := func() (n float64) {
			for _, s := range t.collector.Spans() {
				if s.Tags["http.url"] == "http://shop.example/" && s.Parent == "" {
					n++
				}
			}
			return n
		}
		sigma := math.Sqrt(n * 0.1 * 0.9)
		Eventually(count).Should(BeNumerically("~", n*0.1, 3*sigma), "of %v", n)
		Consistently(count).Should(BeNumerically("~", n*0.1, 3*sigma))
	})

	It("takes the share and the tags of a service or route instead", func() {
		t := newTraced()
		t.trace(map[string]any{"upstream": "grpc", "sampling": 0, "tags": []any{map[string]any{"name": "team", "value": "edge"}}})
		addRoute(t.api, "shop", "never", "/never", "", "blue")
		for name, config := range map[string]string{"all": `{"tags":[{"name":"team","value":"shop"}]}`, "none": `{"sampling":0}`} {
			post(t.api, "/filter", "Filter_name="+name, "Filter_type=route_filter_tracing", "Filter_config="+config)
		}
		t.get("shop.example", "/off")
		post(t.api, "/service/shop/route/never/filter/none")
		post(t.api, "/service/shop/filter/all?wait=applied")
		t.get("shop.example", "/never")
		t.get("shop.example", "/all")
		Expect(t.spansOf("/all", 1)[0].Tags).To(And(HaveKeyWithValue("team", "shop"), HaveKeyWithValue("gatehouse.service", "shop")))
		Expect(t.spansOf("/off", 0)).To(BeEmpty())
		Expect(t.spansOf("/never", 0)).To(BeEmpty())
	})

	It("costs no request while the collector is away, hangs and comes back, and loses spans that Envoy counts", func() {
		t := newTraced()
		t.trace(map[string]any{"upstream": "grpc"})
		t.get("shop.example", "/before")
		t.spansOf("/before", 1)
		traffic, stop := t.traffic("shop.example", 500)
		more := func() { await(traffic, 1000) }
		t.collector.Hang()
		more()
		Expect(t.collector.Close()).To(Succeed())
		more()
		Expect(t.collector.Start()).To(Succeed())
		more()
		stats := read(adminOf(t.plane), "/stats?filter=^(tracing|cluster[.]grpc/telemetry)[.]")
		Expect(stats).To(And(MatchRegexp(`(?m)^tracing[.]opentelemetry[.]spans_sent: [1-9]`), ContainSubstring("tracing.opentelemetry.spans_dropped: ")))
		Expect(stats).To(MatchRegexp(`(?m)^cluster[.]grpc/telemetry[.]upstream_cx_connect_fail: [1-9]`), "spans that were sent, and did not arrive")
		By("switching it off and on again")
		a, err := t.api.Delete(limit(), "/globalconfig/traces?wait=applied")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		more()
		t.trace(map[string]any{"upstream": "grpc"})
		more()
		stop()
		Expect(t.plane.Records("envoy refused configuration and keeps what it had")).To(BeEmpty())
		t.get("shop.example", "/after")
		t.spansOf("/after", 1)
	})

	It("sends a key to collectors that want one, which is in no answer", func() {
		const key, next = "Bearer first-key-of-the-collector", "Bearer second-key-of-the-collector"
		t := newTraced()
		post(t.api, "/secret", "Secret_name=key", "Secret_value="+key)
		credential := map[string]any{"secret": "key", "header": testkit.KeyHeader}
		t.trace(map[string]any{"upstream": "grpc", "credential": credential})
		t.log("log", map[string]any{"upstream": "http", "credential": credential})
		t.get("shop.example", "/keyed")
		t.spansOf("/keyed", 1)
		Eventually(t.line).WithArguments("/keyed").ShouldNot(BeNil())
		Expect(t.collector.Keys()).To(Equal([]string{key}))
		before := listenerChanges(adminOf(t.plane))
		applied(t.api, http.MethodPatch, "/secret/key", "Secret_value="+url.QueryEscape(next))
		sent := func() []string {
			t.get("shop.example", "/again")
			return t.collector.Keys()
		}
		Eventually(sent).Should(Equal([]string{key, next}))
		Expect(listenerChanges(adminOf(t.plane))).To(Equal(before))
		for _, path := range []string{"/globalconfig", "/secret/key", "/config"} {
			Expect(read(t.api, path)).NotTo(ContainSubstring("key-of-the-collector"), path)
		}
		Expect(read(adminOf(t.plane), "/config_dump")).NotTo(ContainSubstring("key-of-the-collector"))
	})

	It("is refused with what is wrong", func() {
		t := newTraced()
		a, err := t.api.Do(limit(), http.MethodPost, "/globalconfig", "application/json",
			`{"globalconfig_name":"traces","globalconfig_type":"globalconfig_tracing","config":{"upstream":"grpc","sampling":101,"path":"x","credential":{"secret":"not a name","header":":path"},"parent":"maybe",
			"force_header":"Cookie","tags":[{"name":"a b","header":"Authorization"},{"name":"c"},{"name":"d","value":"1","header":"x"},{"name":"d","value":"2"}]}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusBadRequest))
		Expect(fieldsOf(a.Body)).To(Equal([]string{
			"config.credential.header", "config.credential.secret", "config.force_header", "config.parent", "config.path", "config.sampling", "config.tags[0].header", "config.tags[0].name",
			"config.tags[1]", "config.tags[2]", "config.tags[3].name",
		}), a.Body)
	})
})
