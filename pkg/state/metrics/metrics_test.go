package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/metrics"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

func TestMetrics(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "metrics")
}

const (
	cluster = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	route   = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// scrape returns the lines of Gatehouse's own metrics, without comments and without the
// buckets of histograms.
func scrape(m *metrics.Metrics) []string {
	GinkgoHelper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	Expect(w.Code).To(Equal(200))
	Expect(w.Header().Get("Content-Type")).To(HavePrefix("text/plain"))
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "gatehouse_") && !strings.Contains(line, "_bucket{") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	Expect(w.Body.String()).To(And(ContainSubstring("\ngo_goroutines "), ContainSubstring("\nprocess_cpu_seconds_total ")))
	return lines
}

var _ = Describe("Metrics", func() {
	It("of a new process are few", func() {
		m, err := metrics.New(status.NewRegistry(), "1.2.3")
		Expect(err).NotTo(HaveOccurred())
		Expect(scrape(m)).To(Equal([]string{
			`gatehouse_build_info{version="1.2.3"} 1`, "gatehouse_publish_seconds_total 0", "gatehouse_revision 0",
		}))
	})

	It("report the registry's state and the API's answers", func() {
		r := status.NewRegistry()
		m, err := metrics.New(r, "1.2.3")
		Expect(err).NotTo(HaveOccurred())
		r.RecordChange(status.Event{Revision: 7})
		r.RecordChange(status.Event{Revision: 8})
		r.RecordPublish(8, 2, []string{"gw"}, 250*time.Millisecond)
		r.Connect(status.Envoy{ID: 1, Proxy: "gw"})
		r.Connect(status.Envoy{ID: 2, Proxy: "gw"})
		r.Connect(status.Envoy{ID: 3, Proxy: "a\"b\nc"})
		r.Connect(status.Envoy{ID: 4, Proxy: "gone"})
		r.Disconnect(4)
		r.RecordAck(1, cluster, status.Answer{})
		r.RecordAck(2, cluster, status.Answer{})
		r.RecordAck(2, route, status.Answer{})
		r.RecordNack(2, route, status.Answer{})
		same := []status.Refusal{{TypeURL: cluster, Resource: "blue"}}
		r.SetProgress(1, status.Progress{Applied: 8, Waiting: []status.Wait{{Host: "shop"}}, Refused: same})
		r.SetProgress(2, status.Progress{Applied: 5, Waiting: []status.Wait{{Host: "shop"}, {Host: "till"}}, Refused: same})
		r.SetConditions("x", []model.Condition{
			{Key: model.RouteKey("shop", "a"), Code: model.NoUpstream}, {Key: model.RouteKey("shop", "b"), Code: model.NoUpstream}, {Code: model.Quarantined},
		})
		Expect(m.AddXDSCertificates(func() map[string]float64 { return map[string]float64{"client_ca": 3600} })).To(Succeed())
		Expect(m.AddCertificates(func() map[string]float64 { return map[string]float64{"shop": 86400, "old": -1.5} })).To(Succeed())
		Expect(m.AddXDS(func() map[string]int64 { return map[string]int64{"token": 3, "none": 0} })).To(Succeed())
		Expect(m.AddProviders(func() []metrics.Provider {
			return []metrics.Provider{{Object: "/filter/a", Answered: true, Age: 1.5, Failures: 2}, {Object: "/globalconfig/b", Failures: 3}}
		})).To(Succeed())
		m.CountAnswer("GET", "/upstream/:upstream", 200, 500*time.Millisecond, "")
		m.CountAnswer("GET", "/upstream/:upstream", 200, 1500*time.Millisecond, "")
		m.CountAnswer("GET", "/events", 200, time.Hour, "")
		m.CountAnswer("BREW", "", 404, time.Second, "")
		m.CountWait(true)
		m.CountWait(false)
		m.CountWait(true)
		Expect(scrape(m)).To(Equal([]string{
			`gatehouse_acks_total{type="cluster"} 2`,
			`gatehouse_acks_total{type="route"} 1`,
			`gatehouse_api_request_seconds_sum{method="GET"} 2`,
			`gatehouse_api_request_seconds_count{method="GET"} 2`,
			`gatehouse_api_request_seconds_sum{method="other"} 1`,
			`gatehouse_api_request_seconds_count{method="other"} 1`,
			`gatehouse_api_requests_total{method="GET",path="/events",status="200"} 1`,
			`gatehouse_api_requests_total{method="GET",path="/upstream/:upstream",status="200"} 2`,
			`gatehouse_api_requests_total{method="other",path="none",status="404"} 1`,
			`gatehouse_api_waits_total{result="applied"} 2`,
			`gatehouse_api_waits_total{result="lagging"} 1`,
			`gatehouse_applied_revision{proxy="a\"b\nc"} 0`,
			`gatehouse_applied_revision{proxy="gw"} 5`,
			`gatehouse_build_info{version="1.2.3"} 1`,
			`gatehouse_certificate_expiry_seconds{secret="old"} -1.5`,
			`gatehouse_certificate_expiry_seconds{secret="shop"} 86400`,
			`gatehouse_conditions{code="NoUpstream"} 2`,
			`gatehouse_conditions{code="Quarantined"} 1`,
			`gatehouse_envoys{proxy="a\"b\nc"} 1`,
			`gatehouse_envoys{proxy="gw"} 2`,
			`gatehouse_events_total{event="ack"} 3`,
			`gatehouse_events_total{event="applied"} 2`,
			`gatehouse_events_total{event="change"} 2`,
			`gatehouse_events_total{event="connect"} 4`,
			`gatehouse_events_total{event="disconnect"} 1`,
			`gatehouse_events_total{event="nack"} 1`,
			`gatehouse_events_total{event="publish"} 1`,
			`gatehouse_nacks_total{type="route"} 1`,
			`gatehouse_provider_answer_age_seconds{object="/filter/a"} 1.5`,
			`gatehouse_provider_failures_total{object="/filter/a"} 2`,
			`gatehouse_provider_failures_total{object="/globalconfig/b"} 3`,
			`gatehouse_publish_seconds_total 0.25`,
			`gatehouse_refused_resources{proxy="a\"b\nc"} 0`,
			`gatehouse_refused_resources{proxy="gw"} 1`,
			`gatehouse_revision 8`,
			`gatehouse_waiting_hosts{proxy="a\"b\nc"} 0`,
			`gatehouse_waiting_hosts{proxy="gw"} 2`,
			`gatehouse_xds_certificate_expiry_seconds{file="client_ca"} 3600`,
			`gatehouse_xds_refusals_total{reason="none"} 0`,
			`gatehouse_xds_refusals_total{reason="token"} 3`,
		}))
	})

	It("of two processes are independent", func() {
		a, err := metrics.New(status.NewRegistry(), "1")
		Expect(err).NotTo(HaveOccurred())
		b, err := metrics.New(status.NewRegistry(), "1")
		Expect(err).NotTo(HaveOccurred())
		a.CountWait(true)
		Expect(scrape(b)).To(HaveLen(3))
	})
})
