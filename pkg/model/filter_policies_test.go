package model_test

import (
	"encoding/base64"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

var _ = DescribeTable("The configuration of", func(kind, config, field string) {
	Expect(refusedField(kind, config)).To(Equal(field))
},
	Entry("a limit of one byte", model.FilterBodyLimit, `{"bytes":1}`, ""),
	Entry("the largest limit", model.FilterBodyLimit, `{"bytes":104857600,"decompress":true}`, ""),
	Entry("a limit below zero", model.FilterBodyLimit, `{"bytes":-1}`, ".bytes"),
	Entry("a limit that is no whole number", model.FilterBodyLimit, `{"bytes":1.5}`, ".bytes"),
	Entry("compression with all", model.FilterCompress, `{}`, ""),
	Entry("compression with one", model.FilterCompress, `{"algorithms":["zstd"]}`, ""),
	Entry("compression with none", model.FilterCompress, `{"algorithms":[]}`, ".algorithms"),
	Entry("the smallest share of faults", model.FilterFault, `{"abort":599,"percent":0.0001}`, ""),
	Entry("a share of faults with four decimals", model.FilterFault, `{"delay":1,"percent":33.3333}`, ""),
	Entry("a smaller share of faults", model.FilterFault, `{"abort":503,"percent":0.00001}`, ".percent"),
	Entry("a negative delay", model.FilterFault, `{"delay":-1}`, ".delay"),
	Entry("a fault for Host", model.FilterFault, `{"delay":1,"header":"host"}`, ".header"),
	Entry("gRPC-Web", model.FilterGRPCWeb, `{}`, ""),
	Entry("calls with the largest descriptor set", model.FilterGRPCJSON, calls(262144, `["shop.Books"]`), ""),
	Entry("calls with a larger one", model.FilterGRPCJSON, calls(262145, `["shop.Books"]`), ".descriptor_set"),
	Entry("calls of a service without a package", model.FilterGRPCJSON, calls(1, `["Books"]`), ""),
	Entry("calls of a method", model.FilterGRPCJSON, calls(1, `["shop.Books/Get"]`), ".services"),
	Entry("calls of as many services as can be", model.FilterGRPCJSON, calls(1, names("a", 100)), ""),
	Entry("calls of one more", model.FilterGRPCJSON, calls(1, names("a", 101)), ".services"),
	Entry("calls with messages of any size", model.FilterGRPCJSON, calls(1, `["a.B"],"max_response_body_size":104857601`), ".max_response_body_size"),
	Entry("maintenance with nothing", model.FilterMaintenance, `{}`, ""),
	Entry("maintenance with as many exceptions as can be", model.FilterMaintenance, `{"except":["10.0.0.1"`+strings.Repeat(`,"10.0.0.1"`, 99)+`]}`, ""),
	Entry("maintenance with one more", model.FilterMaintenance, `{"except":["10.0.0.1"`+strings.Repeat(`,"10.0.0.1"`, 100)+`]}`, ".except"),
	Entry("maintenance with a body that is too long", model.FilterMaintenance, fmt.Sprintf(`{"body":%q}`, strings.Repeat("a", 65537)), ".body"),
	Entry("maintenance without an answer", model.FilterMaintenance, `{"status":204}`, ".status"),
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
