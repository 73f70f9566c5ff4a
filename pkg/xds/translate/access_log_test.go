package translate_test

import (
	"maps"
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = It("The model knows each field of the access log by name", func() {
	formats := translate.RequestFormats(ir.Listener{TLS: &ir.TLS{}, Tracing: &ir.Tracing{}})
	Expect(slices.Collect(maps.Keys(formats))).To(ConsistOf(model.LogFieldNames()))
})

var _ = DescribeTable("The lines of a log for a file go there only if the Envoy has a directory", func(dir, want string) {
	logs := []ir.AccessLog{{Name: "shop", File: true, Dir: dir, Always: true, Omit: []string{"response_code_details"}}}
	l, err := translate.Listener(ir.Listener{AccessLogs: logs})
	Expect(err).NotTo(HaveOccurred())
	four, err := translate.L4Listener(&ir.L4Listener{AccessLogs: logs, Services: []*ir.L4Service{{
		Name: "db", Clusters: []ir.WeightedCluster{{Cluster: &ir.Cluster{Name: "db"}}},
	}}})
	Expect(err).NotTo(HaveOccurred())
	var manager hcmv3.HttpConnectionManager
	Expect(l.GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(&manager)).To(Succeed())
	var proxy tcpv3.TcpProxy
	filters := four.GetFilterChains()[0].GetFilters()
	Expect(filters[len(filters)-1].GetTypedConfig().UnmarshalTo(&proxy)).To(Succeed())
	for _, log := range []*accesslogv3.AccessLog{manager.GetAccessLog()[0], proxy.GetAccessLog()[0]} {
		var file filev3.FileAccessLog
		err := log.GetTypedConfig().UnmarshalTo(&file)
		if want == "" {
			Expect(err).To(HaveOccurred())
			Expect(log.GetName()).To(Equal("envoy.access_loggers.stdout"))
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(file.GetPath()).To(Equal(want))
		Expect(file.GetLogFormat().GetJsonFormat().GetFields()).To(HaveKey("start_time"))
	}
},
	Entry("one", "/var/log/gatehouse", "/var/log/gatehouse/shop.log"),
	Entry("none", "", ""),
)
