package crd_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/crd"
)

var _ = Describe("Logs that a filter names", func() {
	const document = `
version: 1
globalconfigs:
- {globalconfig_name: Main, globalconfig_type: globalconfig_accesslog, config: {}}
- {globalconfig_name: two, globalconfig_type: globalconfig_accesslog, config: {}}
proxies: [{name: a, globalconfigs: [two]}, {name: b, globalconfigs: [two]}]
filters:
- {filter_name: logs, filter_type: route_filter_accesslog, filter_config: {logs: [Main, two]}}
`
	It("are GlobalConfigs, one for each proxy, and come back", func() {
		objects, _, err := crd.Export(parse(document), crd.ExportOptions{Namespace: "shop"})
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, g := range objects.GlobalConfigs {
			names = append(names, g.Name)
		}
		Expect(names).To(ConsistOf(MatchRegexp("^main-[0-9a-f]{8}$"), Equal("two.a"), Equal("two.b")))
		Expect(objects.Filters[0].Spec.RouteFilterConfig.Config).To(MatchRegexp(`^{"logs":\["main-[0-9a-f]{8}","two.a","two.b"\]}$`))
		doc, _, err := crd.Import(objects, crd.ImportOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(encode(doc)).To(ContainSubstring("- Main\n"))
	})
})
