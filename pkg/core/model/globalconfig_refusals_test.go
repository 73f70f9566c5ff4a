package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("A page for refused browsers", func(html, refusal string) {
	var list []string
	g := &model.GlobalConfig{Name: "g", Type: model.GlobalConfigRefusals, Config: model.JSON(`{"html":"` + html + `"}`)}
	for _, e := range g.Validate() {
		list = append(list, e.Field+" "+e.Message)
	}
	Expect(strings.Join(list, "; ")).To(Equal(refusal))
},
	Entry("may have each value four times", strings.Repeat("{title}{status}{request_id}", 4), ""),
	Entry("may have 64 KiB", strings.Repeat("x", 65536), ""),
	Entry("has no more", strings.Repeat("x", 65537), "config.html has 65537 bytes; at most 65536 are allowed"),
	Entry("is not empty", "", "config.html is required"),
	Entry("has a value at most four times", strings.Repeat("{status}", 5), "config.html has {status} 5 times; at most 4 are allowed"),
)
