package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// reporting is a gateway that sends its own spans and metrics to a collector.
type reporting struct {
	gateway
	collector *testkit.Collector
}

func newReporting() reporting {
	GinkgoHelper()
	collector, err := testkit.StartCollector()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(collector.Close)
	port, at := freePort(), fmt.Sprintf("http://127.0.0.1:%d", collector.HTTP)
	g := start([]string{"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_METRIC_EXPORT_INTERVAL=100"},
		append(standaloneArgs(GinkgoT().TempDir(), port), "--otlp-traces", at, "--otlp-metrics", at)...)
	applied(g.API, http.MethodPost, "/proxy", "Name=gw")
	return reporting{gateway{g.API, port}, collector}
}

// call makes a call as part of a client's trace.
func (o reporting) call(method, path, traceparent, body string) testkit.Answer {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(limit(), method, o.api.URL+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", traceparent)
	a, err := o.api.Send(req)
	Expect(err).NotTo(HaveOccurred())
	return a
}

// trace returns the spans of a trace by their names.
func (o reporting) trace(id string, names ...string) map[string]testkit.Span {
	GinkgoHelper()
	find := func() map[string]testkit.Span {
		found := map[string]testkit.Span{}
		for _, s := range o.collector.Spans() {
			if s.Trace == id {
				found[s.Name] = s
			}
		}
		return found
	}
	Eventually(find).Should(HaveLen(len(names)))
	Expect(find()).To(HaveKeys(names))
	return find()
}

// HaveKeys succeeds if a map has exactly these keys.
func HaveKeys(names []string) OmegaMatcher {
	return WithTransform(func(m map[string]testkit.Span) (keys []string) {
		for k := range m {
			keys = append(keys, k)
		}
		return keys
	}, ConsistOf(names))
}

var _ = Describe("Traces of the control plane", func() {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	const sampled = "00-" + trace + "-" + parent + "-01"
	const secret = "a-text-that-nobody-must-see"

	It("follow a write from the call to the Envoy that has it", func() {
		o := newReporting()
		post(o.api, "/service", "Service_name=shop", "Fqdn=shop.test")
		post(o.api, "/secret", "Secret_name=hidden", "Secret_value="+secret)
		a := o.call(http.MethodPost, "/proxy/gw/service/shop?wait=applied", sampled, "")
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
		const call = "POST /proxy/:proxy/service/:service"
		spans := o.trace(trace, call, "write", "wait", "publish", "apply")
		Expect(spans[call]).To(And(HaveField("Parent", parent), HaveField("Service", "gatehouse"), HaveField("Failure", ""),
			HaveField("Tags", And(HaveKeyWithValue("http.response.status_code", "201"), HaveKeyWithValue("url.path", "/proxy/gw/service/shop"),
				HaveKeyWithValue("gatehouse.actor", "local"), HaveKeyWithValue("gatehouse.revision", "4")))))
		for _, name := range []string{"write", "wait", "publish"} {
			Expect(spans[name]).To(HaveField("Parent", spans[call].ID), name)
		}
		apply := spans["apply"]
		Expect(apply).To(And(HaveField("Parent", spans["publish"].ID), HaveField("Failure", ""),
			HaveField("Tags", HaveKeyWithValue("gatehouse.proxy", "gw"))))
		Expect(apply.End).To(And(BeTemporally(">", apply.Start), BeTemporally("<=", spans["wait"].End)))
		Expect(fmt.Sprint(o.collector.Spans())).NotTo(ContainSubstring(secret))
		Expect(o.collector.Spans()).NotTo(ContainElement(HaveField("Tags", HaveKeyWithValue("url.path", "/ready"))))

		By("an exemplar")
		req, err := http.NewRequestWithContext(limit(), http.MethodGet, o.api.URL+"/metrics", nil)
		Expect(err).NotTo(HaveOccurred())
		req.Header.Set("Accept", "application/openmetrics-text")
		metrics, err := o.api.Send(req)
		Expect(err).NotTo(HaveOccurred())
		Expect(metrics.Body).To(MatchRegexp(`gatehouse_api_request_seconds_bucket\{method="POST".* # \{trace_id="` + trace))
	})

	It("have no span for a call that its client does not sample, and one without publish for what changes nothing", func() {
		o := newReporting()
		post(o.api, "/service", "Service_name=shop", "Fqdn=shop.test")
		a := o.call(http.MethodPut, "/service/shop", "00-0af7651916cd43dd8448eb211c80319d-"+parent+"-00", `{"service_name": "shop", "fqdn": "a.test"}`)
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Expect(o.call(http.MethodPut, "/service/shop", sampled, `{"service_name": "shop", "fqdn": "a.test"}`).Status).To(Equal(http.StatusOK))
		Expect(o.call(http.MethodPut, "/service/shop?dry_run=true", strings.Replace(sampled, "c-", "e-", 1), `{"service_name": "shop", "fqdn": "b.test"}`).Status).
			To(Equal(http.StatusOK))
		By("a long path")
		o.call(http.MethodGet, "/"+strings.Repeat("a", 5000), strings.Replace(sampled, "c-", "f-", 1), "")
		Expect(o.trace("0af7651916cd43dd8448eb211c80319f", "HTTP")["HTTP"].Tags["url.path"]).To(HaveLen(1024))
		o.trace(trace, "PUT /service/:service", "write")
		o.trace("0af7651916cd43dd8448eb211c80319e", "PUT /service/:service", "write")
		Expect(slices.ContainsFunc(o.collector.Spans(), func(s testkit.Span) bool { return strings.HasSuffix(s.Trace, "d") && s.Parent == parent })).To(BeFalse())
	})

	It("cost no call while the collector hangs or is away, and metrics are sent too", func() {
		o := newReporting()
		revision := func() float64 { return o.collector.Metrics()["gatehouse_revision"] }
		Eventually(revision).Should(BeNumerically("==", 1))
		Expect(o.collector.Metrics()).To(And(HaveKey("gatehouse_api_request_seconds"), HaveKey("go_goroutines")))
		for _, fail := range []func(){o.collector.Hang, func() { Expect(o.collector.Close()).To(Succeed()) }} {
			fail()
			for i := range 50 {
				began := time.Now()
				post(o.api, "/service", fmt.Sprint("Service_name=s", i), fmt.Sprintf("Fqdn=s%d.test", i))
				Expect(time.Since(began)).To(BeNumerically("<", 5*time.Second))
				remove(o.api, fmt.Sprint("/service/s", i))
			}
			o.collector.Answer()
		}
		metrics := func() string { return read(o.api, "/metrics") }
		Eventually(metrics).WithTimeout(time.Minute).Should(MatchRegexp(`gatehouse_otlp_failures_total\{signal="metrics"\} [1-9]`))
		Expect(o.collector.Start()).To(Succeed())
		Eventually(revision).WithTimeout(time.Minute).Should(BeNumerically("==", 201))
	})
})
