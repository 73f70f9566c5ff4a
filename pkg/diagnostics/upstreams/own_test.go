package upstreams

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
)

func TestUpstreams(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Upstreams")
}

var _ = Describe("The own Envoy", func() {
	// What the admin endpoint answers, by the first part of the path; otherwise nobody listens there.
	var answers map[string]string
	var own *OwnEnvoy
	seen := func(ctx context.Context) (list []*seenCluster) {
		own.inspect(ctx, []string{"blue"}, func(_ string, c *seenCluster) { list = append(list, c) })
		return list
	}
	BeforeEach(func() {
		answers = map[string]string{}
		own = NewOwnEnvoy(func(_ context.Context, path string, answer any) error {
			for prefix, body := range answers {
				if strings.HasPrefix(path, prefix) {
					return json.Unmarshal([]byte(body), answer)
				}
			}
			return errors.New("connection refused")
		})
	})

	It("counts requests since the last look, in the forms in which Envoy writes numbers", func(ctx SpecContext) {
		clusters := func(succeeded, failed string) string {
			return `{"cluster_statuses": [{"name": "blue", "host_statuses": [{
				"address": {"socket_address": {"address": "127.0.0.1", "port_value": 9}},
				"stats": [{"name": "rq_total"}, {"name": "rq_error", "value": "` + failed + `"},
					{"name": "rq_success", "value": "` + succeeded + `"}]}]}]}`
		}
		answers["/clusters?"] = clusters("2", "3")
		answers["/stats?"] = `{"stats": [{"name": "cluster.blue.upstream_cx_connect_fail", "value": 3}]}`
		list := seen(ctx)
		Expect(list).To(HaveLen(1))
		at, tally := list[0].ownHealth("127.0.0.1", 9, false)
		Expect(at).To(Equal(health.Own{Resolved: true, Addresses: 1}))
		Expect(tally.Counts).To(Equal(health.Counts{Succeeded: 2, Unconnected: 3, Causes: health.Causes{Refused: 3}}))

		answers["/clusters?"] = clusters("12", "4")
		answers["/stats?"] = `{"stats": [{"name": "cluster.blue.upstream_cx_connect_fail", "value": 3},
			{"name": "cluster.blue.ssl.connection_error", "value": 1}]}`
		_, tally = seen(ctx)[0].ownHealth("127.0.0.1", 9, false)
		Expect(tally.Counts).To(Equal(health.Counts{
			Succeeded: 12, Unconnected: 4, Causes: health.Causes{Refused: 3, TLS: 1},
		}))
	})

	It("counts what an Envoy without statistics of errors does not tell", func(ctx SpecContext) {
		clusters := func(sent, succeeded, unconnected string) string {
			return `{"cluster_statuses": [{"name": "blue", "host_statuses": [{
				"address": {"socket_address": {"address": "127.0.0.1", "port_value": 9}},
				"stats": [{"name": "rq_total", "value": "` + sent + `"}, {"name": "rq_success", "value": "` + succeeded + `"},
					{"name": "cx_connect_fail", "value": "` + unconnected + `"}]}]}]}`
		}
		answers["/stats?"] = `{"stats": [{"name": "cluster.blue.upstream_cx_connect_fail", "value": 2}]}`
		answers["/clusters?"] = clusters("1", "1", "0")
		Expect(seen(ctx)).To(HaveLen(1))
		answers["/clusters?"] = clusters("6", "3", "0")
		_, tally := seen(ctx)[0].ownHealth("127.0.0.1", 9, false)
		Expect(tally.Counts).To(Equal(health.Counts{Succeeded: 2, Untold: 3}))
		answers["/clusters?"] = clusters("6", "3", "2")
		_, tally = seen(ctx)[0].ownHealth("127.0.0.1", 9, false)
		Expect(tally.Unconnected).To(Equal(uint64(2)))
	})

	It("names the clusters in which an endpoint receives nothing", func(ctx SpecContext) {
		answers["/stats?"] = `{"stats": [
			{"name": "cluster.a.membership_total", "value": 2}, {"name": "cluster.a.membership_healthy", "value": 2},
			{"name": "cluster.b.membership_total", "value": 2}, {"name": "cluster.b.membership_healthy", "value": 1},
			{"name": "cluster.c.membership_total", "value": 0}, {"name": "cluster.c.membership_healthy", "value": 0}]}`
		Expect(own.failingClusters(ctx)).To(ConsistOf("b", "c"))
	})

	It("shows nothing while it does not run, and none is no Envoy", func(ctx SpecContext) {
		Expect(seen(ctx)).To(BeEmpty())
		Expect(own.failingClusters(ctx)).To(BeEmpty())
		var none *OwnEnvoy
		none.Failing(ctx, own.Parent, []string{"blue"})
	})
})
