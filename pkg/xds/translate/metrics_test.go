package translate_test

import (
	"flag"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var update = flag.Bool("update", false, "write the tables of docs/metrics.md again")

const (
	metricsPage  = "../../../docs/metrics.md"
	metricsBegin = "<!-- What follows is made of pkg/xds/translate by make metrics-docs. -->\n"
	metricsEnd   = "<!-- /make metrics-docs of pkg/xds/translate -->\n"
)

// test/e2e shows the metrics of real Envoys, and test/policies the reasons.
var _ = It("The metrics of services are in docs/metrics.md as they describe themselves (make metrics-docs)", func() {
	table, err := translate.MetricsTable()
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(metricsPage)
	Expect(err).NotTo(HaveOccurred())
	head, rest, found := strings.Cut(string(text), metricsBegin)
	Expect(found).To(BeTrue(), "docs/metrics.md has lost the line "+metricsBegin)
	have, tail, found := strings.Cut(rest, metricsEnd)
	Expect(found).To(BeTrue(), "docs/metrics.md has lost the line "+metricsEnd)
	want := "\n" + table + "\n"
	if *update {
		Expect(os.WriteFile(metricsPage, []byte(head+metricsBegin+want+metricsEnd+tail), 0o600)).To(Succeed())
		return
	}
	Expect(have).To(Equal(want), "run make metrics-docs")
})

var _ = It("Each reason of a refusal has its meaning in docs/metrics.md", func() {
	text, err := os.ReadFile(metricsPage)
	Expect(err).NotTo(HaveOccurred())
	_, reasons, found := strings.Cut(string(text), "\n### Reasons\n")
	Expect(found).To(BeTrue())
	reasons, _, _ = strings.Cut(reasons, "\n## ")
	for _, reason := range translate.Reasons() {
		Expect(reasons).To(ContainSubstring("`" + reason + "`"))
	}
})
