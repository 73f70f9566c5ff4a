package pipeline_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("The metrics of services", func() {
	It("reach each host of the proxy when they are turned on and off, the hosts that change and those that are closed", func() {
		build := newBuild()
		build.Apply(filtered(
			&model.Service{Name: "till", FQDN: "till.test"}, &model.ProxyService{Proxy: "gw", Service: "till"},
			&model.Route{Service: "till", Name: "root", Prefix: "/"}, &model.RouteUpstream{Service: "till", Route: "root", Upstream: "blue"},
		))
		revision := int64(1)
		// labels are the names by host; empty means none.
		labels := func(entries ...model.Entry) map[string]string {
			GinkgoHelper()
			revision++
			result := build.Apply(model.Change{Revision: revision, Entries: entries})
			found := map[string]string{}
			for _, h := range result.Snapshots["gw"].Hosts {
				vh, err := h.VirtualHost()
				Expect(err).NotTo(HaveOccurred())
				found[vh.GetName()] = vh.GetMetadata().GetFilterMetadata()["gatehouse.metrics"].GetFields()["service"].GetStringValue()
			}
			return found
		}
		entry := func(o model.Object) model.Entry { return model.Entry{Key: o.Key(), Object: o} }
		metrics := &model.GlobalConfig{Name: "metrics", Type: model.GlobalConfigMetrics, Config: `{}`}
		all := map[string]string{"shop": "shop", "till": "till"}
		Expect(labels(entry(metrics))).To(Equal(all))
		Expect(labels(entry(&model.Service{Name: "till", FQDN: "cash.test"}))).To(Equal(all))
		Expect(labels(
			entry(&model.Filter{ID: 20, Name: "guard", Type: model.FilterIPAccess, Config: `{"allow":["x"]}`}),
			entry(&model.ServiceFilter{ID: 21, Service: "shop", Filter: "guard"}),
		)).To(Equal(all))
		Expect(labels(model.Entry{Key: metrics.Key()})).To(Equal(map[string]string{"shop": "", "till": ""}))
	})
})
