//go:build images

package images

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// path delays the backend's answer, so that requests are running when the gateway
// stops.
const path = "/slow?delay=50ms"

// accepted returns the requests that Envoy has accepted, by its access log: their
// number, and those with another status than 200.
func accepted(name string) (all int, bad []string) {
	GinkgoHelper()
	for line := range strings.Lines(docker("logs", name)) {
		var entry struct {
			Path   string
			Status int `json:"response_code"`
		}
		if json.Unmarshal([]byte(line), &entry) != nil || entry.Path != "/slow" {
			continue
		}
		all++
		if entry.Status != 200 {
			bad = append(bad, line)
		}
	}
	return all, bad
}

var _ = Describe("docker stop under load", func() {
	It("ends within 10 s and loses no request that Envoy had accepted", func() {
		g := standalone()
		web := backend("web", "127.0.0.1")
		g.route(web)
		Eventually(g.get).Should(Equal("200 web"))
		before := web.Requests()

		kept := testkit.StartTraffic(testkit.TrafficOptions{Addr: g.http, Path: path, Rate: 250, Connections: 30})
		fresh := testkit.StartTraffic(testkit.TrafficOptions{Addr: g.http, Path: path, Rate: 250, Connections: 30, Fresh: true})
		DeferCleanup(kept.Stop)
		DeferCleanup(fresh.Stop)
		Eventually(web.Requests).Should(BeNumerically(">", before+1000))
		began := time.Now()
		docker("stop", g.name)
		took := time.Since(began)
		Expect(docker("inspect", "--format", "{{.State.ExitCode}}", g.name)).To(Equal("0"))
		Expect(took).To(BeNumerically("<", 10*time.Second), "else the engine kills it")

		answered, refused := 0, map[string]int{}
		for _, traffic := range []*testkit.Traffic{kept, fresh} {
			report := traffic.Stop()
			answered += report.Backends["web"]
			for _, f := range report.Failures {
				reason := f.Reason[strings.LastIndex(f.Reason, ": ")+2:]
				refused[reason]++
			}
		}
		all, bad := accepted(g.name)
		say("docker stop at 500 requests per second: %d accepted, %d answered, ended after %d ms; refused: %v", all, answered, took.Milliseconds(), refused)
		Expect(bad).To(BeEmpty())
		Expect(answered).To(Equal(all), "every request that Envoy accepted was answered")
		Expect(web.Requests()-before).To(Equal(all), "and the backend saw nothing else")
	})
})
