package explain_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

// requestsPerSeed times the seeds of make test are 5,000 requests.
const (
	requestsPerSeed = 200
	testSeeds       = 25
)

// refusals are the texts that explain does not give.
var refusals = map[string]string{
	explain.NoHost:    "nothing is served for this host and path",
	explain.NoRoute:   "nothing is served for this host and path",
	explain.NoUpgrade: "this is not allowed here",
}

// disagreement says how a result differs from its explanation; "" if it does not.
func disagreement(a explain.Answer, method string, got result) string {
	want := result{status: a.Status, location: a.Location, body: cmp.Or(strings.TrimSpace(a.Body), refusals[a.Code]), hsts: hstsOf(a)}
	if method == "HEAD" {
		want.body = ""
	}
	if a.GRPCStatus > 0 {
		want.grpc, want.body = strconv.Itoa(a.GRPCStatus), "" // there it is a header
	}
	switch a.Code {
	case explain.Forwarded:
		e := a.Forward.Clusters[0].Endpoints[0]
		got.grpc = "" // the backend's answer does not have it
		want = result{status: 200, forwarded: true, address: e.Address, target: a.Forward.Path, sawFor: a.Forward.Host, hsts: hstsOf(a)}
	case explain.BadRequest:
		if a.Body == "" { // the text of Envoy's own answers may change
			got.body = ""
		}
	case explain.DirectResponse:
		got.location = "" // Envoy adds one only to 201 and 3xx
	}
	if got == want {
		return ""
	}
	return fmt.Sprintf("explained %+v\nEnvoy did  %+v", want, got)
}

var _ = Describe("Explain", func() {
	It("selects the route that Envoy selects, every time", func(ctx SpecContext) {
		l := newLab(ctx)
		c := &client{addr: fmt.Sprintf("127.0.0.1:%d", l.port)}
		DeferCleanup(c.close)
		counts := map[string]int{}
		first, last := seeds(os.Getenv, testSeeds)
		var wrong []string
		for seed := first; seed < last; seed++ {
			g := newGenerator(seed, l.backend)
			have := stateOf(l.publish(g.configuration()))
			l.live()
			for n := range requestsPerSeed {
				r := g.request()
				a, err := explain.Explain(have, r)
				Expect(err).NotTo(HaveOccurred())
				got, err := c.send(r)
				Expect(err).NotTo(HaveOccurred())
				counts[a.Code]++
				if d := disagreement(a, r.Method, got); d != "" {
					wrong = append(wrong, fmt.Sprintf("seed %d request %d: %q\n%s\nbecause %s", seed, n, bytesOf(r), d, a.Message))
				}
			}
		}
		GinkgoWriter.Println(counts)
		AddReportEntry("answers", fmt.Sprint(counts))
		if len(wrong) > 0 {
			Fail(fmt.Sprintf("%d disagree (GATEHOUSE_TEST_FIRST_SEED=N GATEHOUSE_TEST_SEEDS=1 repeats one):\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 12)], "\n\n")))
		}
	})
})
