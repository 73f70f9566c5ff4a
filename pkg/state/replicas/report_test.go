package replicas_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

const routeType = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"

var _ = Describe("A report", func() {
	wanted := func(string) int64 { return 5 }

	It("has one line for a current Envoy, and the obstacle for another one", func() {
		registry := status.NewRegistry()
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw", Address: "10.0.0.1:1"})
		registry.Connect(status.Envoy{ID: 2, Proxy: "gw", Address: "10.0.0.2:1"})
		registry.RecordSent(1, routeType, status.Answer{Revision: 5, At: time.Unix(1, 0)})
		registry.RecordAck(1, routeType, status.Answer{Revision: 5, At: time.Unix(2, 0)})
		registry.SetProgress(1, status.Progress{Applied: 5})
		registry.RecordSent(2, routeType, status.Answer{Revision: 5, At: time.Unix(1, 0)})
		registry.RecordNack(2, routeType, status.Answer{Revision: 5, At: time.Unix(2, 0), Text: "no"})
		registry.SetProgress(2, status.Progress{Applied: 4, Refused: []status.Refusal{{Resource: "shop", Objects: []model.Key{model.ServiceKey("shop")}, Text: "no"}}})
		r := replicas.Observe(registry, model.Mark{Revision: 7, ID: "x"}, wanted)
		Expect(r.Built).To(Equal(int64(7)))
		Expect(r.Envoys[0]).To(And(HaveField("Current", true), HaveField("Types", BeEmpty()), HaveField("Applied", int64(5))))
		Expect(r.Envoys[1]).To(And(HaveField("Current", false), HaveField("Answered", true), HaveField("Types", HaveLen(1)), HaveField("Refused", HaveLen(1))))
		registry.RecordSent(2, routeType, status.Answer{Revision: 6, At: time.Unix(3, 0)})
		Expect(replicas.Observe(registry, model.Mark{}, wanted).Envoys[1].Answered).To(BeFalse())
	})

	It("is limited, whatever the Envoys refuse", func() {
		registry := status.NewRegistry()
		for id := range int64(6000) {
			registry.Connect(status.Envoy{ID: id, Proxy: "gw", Address: fmt.Sprintf("10.0.0.1:%d", id)})
			registry.SetProgress(id, status.Progress{Refused: []status.Refusal{{Text: strings.Repeat(fmt.Sprint(id), 1000)}}})
		}
		r := replicas.Observe(registry, model.Mark{Revision: 7}, wanted)
		Expect(r.Envoys).To(HaveLen(5000))
		Expect(r.More).To(Equal(map[string]int{"gw": 1000}))
		Expect(r.MoreLagging).To(Equal(map[string]int{"gw": 1000}))
		told := 0
		for _, e := range r.Envoys {
			if e.Cut {
				Expect(e.Refused).To(BeEmpty())
				continue
			}
			told++
			Expect(len(e.Refused[0].Text)).To(BeNumerically("<=", 503))
		}
		Expect(told).To(BeNumerically("~", 180, 60), "128 KiB of details")
	})
})

var _ = DescribeTable("A replica gives its Envoys what another one gives", func(has, wants replicas.Position, yes bool) {
	Expect(has.Covers(wants)).To(Equal(yes))
},
	Entry("at the same revision", replicas.Position{Built: 7, BuiltID: "x"}, replicas.Position{Built: 7, BuiltID: "x"}, true),
	Entry("at a newer revision", replicas.Position{Built: 8, BuiltID: "y"}, replicas.Position{Built: 7, BuiltID: "x"}, true),
	Entry("not at an older revision", replicas.Position{Built: 6}, replicas.Position{Built: 7}, false),
	Entry("not at the same revision number of another database", replicas.Position{Built: 7, BuiltID: "y"}, replicas.Position{Built: 7, BuiltID: "x"}, false),
	Entry("if it has seen as much of Kubernetes, whatever the revisions", replicas.Position{Built: 1, Seen: map[string]int64{"GatewayHost": 9, "Service": 4}},
		replicas.Position{Built: 7, Seen: map[string]int64{"GatewayHost": 9}}, true),
	Entry("not if it has seen less of one kind", replicas.Position{Built: 8, Seen: map[string]int64{"GatewayHost": 9}},
		replicas.Position{Built: 7, Seen: map[string]int64{"GatewayHost": 9, "Service": 4}}, false),
)

var _ = Describe("An Envoy that moves", func() {
	heard := time.Unix(100, 0)
	other := func(addresses ...string) []replicas.Other {
		r := &replicas.Report{Replica: "b"}
		for _, a := range addresses {
			r.Envoys = append(r.Envoys, replicas.Envoy{Proxy: "gw", Address: a})
		}
		return []replicas.Other{{Report: r, Heard: heard}}
	}
	left := func(list []replicas.Other) (addresses []string) {
		for _, e := range list[0].Envoys {
			addresses = append(addresses, e.Address)
		}
		return addresses
	}
	own := func(proxy, address string, connected int64) []status.Envoy {
		return []status.Envoy{{Proxy: proxy, Address: address, Connected: time.Unix(connected, 0)}}
	}

	DescribeTable("is counted once", func(own []status.Envoy, want ...string) {
		Expect(left(replicas.WithoutMoved(own, other("10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1")))).To(Equal(want))
	},
		Entry("where it arrived after the last report of its old replica", own("gw", "10.0.0.1:9", 101), "10.0.0.1:2", "10.0.0.2:1"),
		Entry("not where the old replica has reported since", own("gw", "10.0.0.1:9", 99), "10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1"),
		Entry("not from another host", own("gw", "10.0.0.3:1", 101), "10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1"),
		Entry("not under another proxy", own("edge", "10.0.0.1:1", 101), "10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1"),
	)
})
