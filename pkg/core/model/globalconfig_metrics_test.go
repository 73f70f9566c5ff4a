package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The metrics of services", func(config string, series int, refusal string) {
	var list []string
	g := &model.GlobalConfig{Name: "g", Type: model.GlobalConfigMetrics, Config: model.JSON(config)}
	for _, e := range g.Validate() {
		list = append(list, e.Field+" "+e.Message)
	}
	Expect(strings.Join(list, "; ")).To(Equal(refusal))
	if series > 0 {
		Expect(g.Parse().Spec.(*model.MetricsConfig).Series()).To(Equal(series))
	}
},
	Entry("have a bound of their own", `{}`, 1000, ""),
	Entry("have another one", `{"max_series":20000,"routes":true,"bytes":true,"retries":true}`, 20000, ""),
	Entry("have no larger one", `{"max_series":20001}`, 0, "config.max_series 20001 is not between 0 and 20000"),
	Entry("have no negative one", `{"max_series":-1}`, 0, "config.max_series -1 is not between 0 and 20000"),
	Entry("have no other fields", `{"labels":["path"]}`, 0, `config unknown field "labels"`),
)
