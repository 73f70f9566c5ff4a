package e2e_test

import (
	"os"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("docs/operations.md", func() {
	It("defines alerts on metrics and labels that Envoy has", func() {
		text, err := os.ReadFile("../../docs/operations.md")
		Expect(err).NotTo(HaveOccurred())
		names := regexp.MustCompile(`\benvoy_[a-z_]+`).FindAllString(string(text), -1)
		Expect(names).To(ContainElement("envoy_control_plane_connected_state"))
		g, _, _ := shop()
		stats := read(g.Admin, "/stats/prometheus")
		for _, name := range names {
			// Those of rate limits exist from the first answer on; see
			// ratelimit_service_test.go.
			if !strings.HasPrefix(name, "envoy_cluster_ratelimit_") {
				Expect(regexp.MatchString(`\b`+name+`[{=]`, stats)).To(BeTrue(), name)
			}
		}
	})
})
