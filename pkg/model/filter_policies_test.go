package model_test

import (
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
	Entry("maintenance with nothing", model.FilterMaintenance, `{}`, ""),
	Entry("maintenance with as many exceptions as can be", model.FilterMaintenance, `{"except":["10.0.0.1"`+strings.Repeat(`,"10.0.0.1"`, 99)+`]}`, ""),
	Entry("maintenance with one more", model.FilterMaintenance, `{"except":["10.0.0.1"`+strings.Repeat(`,"10.0.0.1"`, 100)+`]}`, ".except"),
	Entry("maintenance with a body that is too long", model.FilterMaintenance, fmt.Sprintf(`{"body":%q}`, strings.Repeat("a", 65537)), ".body"),
	Entry("maintenance without an answer", model.FilterMaintenance, `{"status":204}`, ".status"),
)
