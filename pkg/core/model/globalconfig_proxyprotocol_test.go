package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The PROXY protocol needs addresses that may send it", func(config string, fields ...string) {
	g := &model.GlobalConfig{Name: "g", Type: model.GlobalConfigProxyProtocol, Config: model.JSON(config)}
	have := make([]string, 0)
	for _, e := range g.Validate() {
		have = append(have, e.Field)
	}
	Expect(have).To(Equal(fields))
},
	Entry("an address and ranges", `{"from":["192.0.2.1","10.0.0.0/8","2001:db8::/32"]}`),
	Entry("none", `{}`, "config.from"),
	Entry("an empty list", `{"from":[]}`, "config.from"),
	Entry("a name", `{"from":["example.test","192.0.2.1"]}`, "config.from"),
	Entry("too many", `{"from":["192.0.2.1"`+strings.Repeat(`,"192.0.2.1"`, 2000)+`]}`, "config.from"),
	Entry("another field", `{"from":["192.0.2.1"],"to":1}`, "config"),
)
