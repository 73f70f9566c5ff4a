package explain_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

var _ = Describe("Escaped slashes and underscores", func() {
	It("are handled by explain as by Envoy, whatever the settings of the proxy", func(ctx SpecContext) {
		l := newLab(ctx)
		c := &client{addr: fmt.Sprintf("127.0.0.1:%d", l.port)}
		DeferCleanup(c.close)
		var wrong []string
		for i, slashes := range []string{"keep", "reject", "redirect"} {
			for j, underscores := range []string{"drop", "allow", "reject"} {
				g := newGenerator(uint64(3*i+j), l.backend) //nolint:gosec // a few
				l.slashes, l.underscores = slashes, underscores
				have := stateOf(l.publish(g.configuration()))
				l.live()
				c.close() // a connection keeps the listener that it started with
				codes := map[string]int{}
				for range 120 {
					r := g.request()
					if g.chance(2) {
						at := 1 + strings.IndexByte(r.Target, '/')
						r.Target = r.Target[:at] + pick(g, "%2F", "%2f", "%5C", "a%2Fb", "..%2f", "%2f..", "%2e%2e%2F", "%5c..") + r.Target[at:]
					}
					for g.chance(2) {
						r.Headers = append(r.Headers, explain.Header{Name: pick(g, "x_a", "x_b", "_", "X_A", "x-a_", "connection_", "content_length", "host_"), Value: pick(g, "1", "2", "")})
					}
					a, err := explain.Explain(have, r)
					Expect(err).NotTo(HaveOccurred())
					got, err := c.send(r)
					Expect(err).NotTo(HaveOccurred())
					codes[a.Code]++
					if d := disagreement(a, r.Method, got); d != "" {
						wrong = append(wrong, fmt.Sprintf("%s, %s: %q\n%s\nbecause %s", slashes, underscores, bytesOf(r), d, a.Message))
					}
				}
				AddReportEntry(slashes+" "+underscores, fmt.Sprint(codes))
			}
		}
		Expect(wrong).To(BeEmpty(), "%s", strings.Join(wrong, "\n\n"))
	})
})
