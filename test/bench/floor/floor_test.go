package main

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

func TestFloor(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "floor")
}

var _ = Describe("Minimal messages", func() {
	It("are the least that serves the routes", func() {
		w := &world{form: byHand{}}
		routes := layout.Routes(1, layout.PerService, 9000)
		Expect(w.replace(routes)).To(Succeed())
		Expect(w.addRoute(layout.Added(0, 1, layout.PerService, 9001))).To(Succeed())

		Expect(protojson.Marshal(w.sorted[0].host)).To(MatchJSON(`{
			"name": "s0000", "domains": ["s0000.bench.example"],
			"routes": [
				{"name": "r00000", "match": {"prefix": "/r00000"}, "route": {"cluster": "u-r00000", "timeout": "0s"}},
				{"name": "new00000", "match": {"prefix": "/new00000"}, "directResponse": {"status": 503}}
			]}`))
		Expect(w.sorted[0].clusters).To(HaveLen(1))
		Expect(protojson.Marshal(w.sorted[0].clusters[0])).To(MatchJSON(`{
			"name": "u-r00000", "type": "STATIC", "connectTimeout": "5s", "perConnectionBufferLimitBytes": 32768,
			"loadAssignment": {"clusterName": "u-r00000", "endpoints": [{"lbEndpoints": [
				{"endpoint": {"address": {"socketAddress": {"address": "127.0.0.1", "portValue": 9000}}}}]}]}}`))
		Expect(protojson.Marshal(byHand{}.routeConfiguration())).To(MatchJSON(`{"name": "gatehouse"}`))
	})

	It("share the cluster of an upstream", func() {
		w := &world{form: byHand{}}
		one := layout.Routes(2, layout.PerService, 9000)
		one[1].Upstream = one[0].Upstream
		Expect(w.replace(one)).To(Succeed())
		f := &floor{world: w}
		snapshot, err := f.snapshot()
		Expect(err).NotTo(HaveOccurred())
		Expect(snapshot.GetResources("type.googleapis.com/envoy.config.cluster.v3.Cluster")).To(HaveLen(1))
	})
})
