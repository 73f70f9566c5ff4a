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
	Entry("texts", `{"from":["192.0.2.1"],"tlvs":[{"type":2,"name":"authority"},{"type":234,"name":"vpc-id_1"}]}`),
	Entry("types and names that are none", `{"from":["192.0.2.1"],"tlvs":[{"name":"a%b"},{"type":256,"name":"a:b"},{"type":1,"name":""}]}`,
		"config.tlvs[0].type", "config.tlvs[0].name", "config.tlvs[1].type", "config.tlvs[1].name", "config.tlvs[2].name"),
	Entry("a type and a name twice", `{"from":["192.0.2.1"],"tlvs":[{"type":2,"name":"a"},{"type":2,"name":"a"}]}`, "config.tlvs[1].type", "config.tlvs[1].name"),
	Entry("too many texts", `{"from":["192.0.2.1"],"tlvs":[{"type":1,"name":"a"}`+strings.Repeat(`,{"type":2,"name":"b"}`, 16)+`]}`, "config.tlvs"),
	Entry("another field", `{"from":["192.0.2.1"],"to":1}`, "config"),
)

var _ = DescribeTable("A field of an access log from the PROXY protocol", func(config string, fields ...string) {
	g := &model.GlobalConfig{Name: "g", Type: model.GlobalConfigAccessLog, Config: model.JSON(config)}
	have := make([]string, 0)
	for _, e := range g.Validate() {
		have = append(have, e.Field)
	}
	Expect(have).To(Equal(fields))
},
	Entry("with a name", `{"fields":[{"name":"vpc","tlv":"vpc"}]}`),
	Entry("with no name of one", `{"fields":[{"name":"vpc","tlv":"a%b"}]}`, "config.fields[0].tlv"),
	Entry("and from elsewhere", `{"fields":[{"name":"vpc","tlv":"vpc","claim":"sub"}]}`, "config.fields[0]"),
	Entry("in a line of text, which it could break", `{"text":"{vpc}","fields":[{"name":"vpc","tlv":"vpc"}]}`, "config.fields[0].tlv"),
)
