package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/metrics"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

var update = flag.Bool("update", false, "write the table of docs/metrics.md again")

const (
	docs  = "../../../docs/"
	begin = "<!-- What follows is made of the metrics' descriptions by make metrics-docs. -->\n"
	end   = "<!-- /make metrics-docs -->\n"
)

// everything returns metrics that all have a value.
func everything() *metrics.Metrics {
	GinkgoHelper()
	r := status.NewRegistry()
	m, err := metrics.New(r, "1.2.3")
	Expect(err).NotTo(HaveOccurred())
	one := map[string]float64{"a": 1}
	Expect(m.AddCertificates(func() map[string]float64 { return one })).To(Succeed())
	Expect(m.AddXDSCertificates(func() map[string]float64 { return one })).To(Succeed())
	Expect(m.AddProviders(func() []metrics.Provider { return []metrics.Provider{{Object: "a", Answered: true}} })).To(Succeed())
	Expect(m.AddLogins(func() map[string]int { return map[string]int{"a": 1} })).To(Succeed())
	Expect(m.AddOrders(func() map[string]int { return map[string]int{"a": 1} })).To(Succeed())
	Expect(m.AddXDS(func() map[string]int64 { return map[string]int64{"a": 1} })).To(Succeed())
	Expect(m.AddUpstreams(func() []metrics.Upstream { return []metrics.Upstream{{Proxy: "a", Name: "b"}} })).To(Succeed())
	Expect(m.AddOTLP(map[string]func() int64{"a": func() int64 { return 1 }})).To(Succeed())
	r.Connect(status.Envoy{ID: 1, Proxy: "gw"})
	r.RecordAck(1, cluster, status.Answer{})
	r.RecordNack(1, cluster, status.Answer{})
	r.SetConditions("x", []model.Condition{{Code: model.NoUpstream}})
	m.CountAnswer("GET", "/", 200, 0, "")
	m.CountWait(true)
	return m
}

// table returns the table of a page: what the metrics are, as they describe themselves.
func table(m *metrics.Metrics) string {
	GinkgoHelper()
	families, err := m.Gatherer().Gather()
	Expect(err).NotTo(HaveOccurred())
	page := regexp.MustCompile(`docs/([a-z-]+\.md)`)
	var b strings.Builder
	b.WriteString("\n| metric | type | value |\n|---|---|---|\n")
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "gatehouse_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		name := f.GetName()
		if labels != nil {
			name += "{" + strings.Join(labels, ",") + "}"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, strings.ToLower(f.GetType().String()), page.ReplaceAllString(f.GetHelp(), "[$0]($1)"))
	}
	return b.String() + "\n"
}

var _ = Describe("The documents", func() {
	own := regexp.MustCompile(`\bgatehouse_[a-z_]+`)
	read := func(name string) string {
		GinkgoHelper()
		text, err := os.ReadFile(docs + name)
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}

	DescribeTable("name no metric that does not exist", func(file string) {
		Expect(own.FindAllString(read(file), -1)).To(And(Not(BeEmpty()), HaveEach(BeElementOf(metrics.Names(everything())))))
	},
		Entry("metrics.md", "metrics.md"),
		Entry("operations.md", "operations.md"),
	)

	It("have a table of all metrics, as these describe themselves (make metrics-docs writes it again)", func() {
		m := everything()
		want := table(m)
		for _, name := range metrics.Names(m) {
			if strings.HasPrefix(name, "gatehouse_") {
				Expect(want).To(MatchRegexp("(?m)^\\| `"+name+"[{`]"), "everything gives each metric a value")
			}
		}
		head, rest, found := strings.Cut(read("metrics.md"), begin)
		Expect(found).To(BeTrue(), "metrics.md has lost the line "+begin)
		have, tail, found := strings.Cut(rest, end)
		Expect(found).To(BeTrue(), "metrics.md has lost the line "+end)
		if *update {
			Expect(os.WriteFile(docs+"metrics.md", []byte(head+begin+want+end+tail), 0o600)).To(Succeed())
			return
		}
		Expect(have).To(Equal(want), "run make metrics-docs")
	})
})
