package metrics_test

import (
	"os"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/metrics"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

var _ = Describe("The documents", func() {
	own := regexp.MustCompile(`\bgatehouse_[a-z_]+`)
	read := func(name string) string {
		GinkgoHelper()
		text, err := os.ReadFile("../../../docs/" + name)
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}
	var names []string
	BeforeEach(func() {
		m, err := metrics.New(status.NewRegistry(), "1.2.3")
		Expect(err).NotTo(HaveOccurred())
		Expect(m.AddCertificates(nil)).To(Succeed())
		Expect(m.AddXDSCertificates(nil)).To(Succeed())
		Expect(m.AddProviders(nil)).To(Succeed())
		Expect(m.AddLogins(nil)).To(Succeed())
		Expect(m.AddXDS(nil)).To(Succeed())
		Expect(m.AddOTLP(nil)).To(Succeed())
		names = nil
		for _, name := range metrics.Names(m) {
			if strings.HasPrefix(name, "gatehouse_") {
				names = append(names, name)
			}
		}
		Expect(names).To(ContainElements("gatehouse_revision", "gatehouse_xds_refusals_total"))
	})

	DescribeTable("name no metric that does not exist", func(file string) {
		Expect(own.FindAllString(read(file), -1)).To(And(Not(BeEmpty()), HaveEach(BeElementOf(names))))
	},
		Entry("metrics.md", "metrics.md"),
		Entry("operations.md", "operations.md"),
	)

	It("have a row for each metric", func() {
		rows := regexp.MustCompile("(?m)^\\| `.*$").FindAllString(read("metrics.md"), -1)
		for _, name := range names {
			Expect(rows).To(ContainElement(ContainSubstring("`"+name)), name)
		}
	})
})
