package pipeline_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = It("A listener is encoded again only if it changes", func() {
	build := newBuild()
	first := build.Apply(filtered()).Snapshots["gw"].Listeners
	Expect(first).NotTo(BeEmpty())

	second := model.Change{Revision: 2}
	for _, o := range []model.Object{&model.Service{Name: "till", FQDN: "till.test"}, &model.ProxyService{Proxy: "gw", Service: "till"}} {
		second.Entries = append(second.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	with := build.Apply(second).Snapshots["gw"]
	Expect(with.Hosts).To(HaveLen(2))
	for i, l := range with.Listeners {
		Expect(l).To(BeIdenticalTo(first[i]))
	}

	gw := proxyNamed("gw")
	gw.HTTPPort = 8888
	third := build.Apply(model.Change{Revision: 3, Entries: []model.Entry{{Key: gw.Key(), Object: gw}}}).Snapshots["gw"].Listeners
	Expect(third[0].Version).NotTo(Equal(first[0].Version))
})
