package model_test

import (
	"encoding/base64"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The configuration of", func(kind, config, field string) {
	Expect(refusedField(kind, config)).To(Equal(field))
},
	Entry("a limit of one byte", model.FilterBodyLimit, `{"bytes":1}`, ""),
	Entry("the largest limit", model.FilterBodyLimit, `{"bytes":104857600,"decompress":true}`, ""),
	Entry("a limit below zero", model.FilterBodyLimit, `{"bytes":-1}`, ".bytes"),
	Entry("a fractional limit", model.FilterBodyLimit, `{"bytes":1.5}`, ".bytes"),
	Entry("compression with all algorithms", model.FilterCompress, `{}`, ""),
	Entry("compression with one algorithm", model.FilterCompress, `{"algorithms":["zstd"]}`, ""),
	Entry("the highest level of compression", model.FilterCompress, `{"level":9}`, ""),
	Entry("a higher level of compression", model.FilterCompress, `{"level":10}`, ".level"),
	Entry("a page for an error", model.FilterErrorPage, `{"pages":[{"statuses":["400-599"],"text":"a"}]}`, ""),
	Entry("a page for an answer that is no error", model.FilterErrorPage, `{"pages":[{"statuses":["399-404"],"text":"a"}]}`, ".pages[0].statuses"),
	Entry("a page for what is no status", model.FilterErrorPage, `{"pages":[{"statuses":["500-600"],"text":"a"}]}`, ".pages[0].statuses"),
	Entry("compression with none", model.FilterCompress, `{"algorithms":[]}`, ".algorithms"),
	Entry("the smallest share of faults", model.FilterFault, `{"abort":599,"percent":0.0001}`, ""),
	Entry("a share of faults with four decimals", model.FilterFault, `{"delay":1,"percent":33.3333}`, ""),
	Entry("a smaller share of faults", model.FilterFault, `{"abort":503,"percent":0.00001}`, ".percent"),
	Entry("a negative delay", model.FilterFault, `{"delay":-1}`, ".delay"),
	Entry("a fault for Host", model.FilterFault, `{"delay":1,"header":"host"}`, ".header"),
	Entry("gRPC-Web", model.FilterGRPCWeb, `{}`, ""),
	Entry("calls with the largest descriptor set", model.FilterGRPCJSON, calls(262144, `["shop.Books"]`), ""),
	Entry("calls with a descriptor set that is too large", model.FilterGRPCJSON, calls(262145, `["shop.Books"]`), ".descriptor_set"),
	Entry("calls of a service without a package", model.FilterGRPCJSON, calls(1, `["Books"]`), ""),
	Entry("calls of a method, not a service", model.FilterGRPCJSON, calls(1, `["shop.Books/Get"]`), ".services"),
	Entry("calls of the maximum number of services", model.FilterGRPCJSON, calls(1, names("a", 100)), ""),
	Entry("calls of one service too many", model.FilterGRPCJSON, calls(1, names("a", 101)), ".services"),
	Entry("calls with messages above the limit", model.FilterGRPCJSON, calls(1, `["a.B"],"max_response_body_size":104857601`), ".max_response_body_size"),
	Entry("maintenance with defaults", model.FilterMaintenance, `{}`, ""),
	Entry("maintenance with the maximum number of exceptions", model.FilterMaintenance, `{"except":["10.0.0.1"`+strings.Repeat(`,"10.0.0.1"`, 99)+`]}`, ""),
	Entry("maintenance with one exception too many", model.FilterMaintenance, `{"except":["10.0.0.1"`+strings.Repeat(`,"10.0.0.1"`, 100)+`]}`, ".except"),
	Entry("maintenance with a body that is too long", model.FilterMaintenance, fmt.Sprintf(`{"body":%q}`, strings.Repeat("a", 65537)), ".body"),
	Entry("maintenance with a status without a body", model.FilterMaintenance, `{"status":204}`, ".status"),
)

// calls is a configuration with a descriptor set of so many bytes.
func calls(bytes int, services string) string {
	return fmt.Sprintf(`{"descriptor_set":%q,"services":%s}`, base64.StdEncoding.EncodeToString(make([]byte, bytes)), services)
}

// names lists n different names.
func names(name string, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%q", fmt.Sprint(name, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}
