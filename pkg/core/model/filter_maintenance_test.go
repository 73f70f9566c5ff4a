package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = It("Maintenance with the longest body is accepted", func() {
	Expect(faultsOf(model.FilterMaintenance, `{"body":"`+strings.Repeat("a", 65536)+`"}`)).To(BeEmpty())
})

var _ = It("Maintenance is on unless it says that it is off", func() {
	on := func(config model.JSON) bool {
		f, _ := (&model.Filter{Name: "f", Type: model.FilterMaintenance, Config: config}).Parse().Spec.(*model.MaintenanceFilter)
		return f.IsOn()
	}
	Expect(on(`{}`)).To(BeTrue())
	Expect(on(`{"on":true}`)).To(BeTrue())
	Expect(on(`{"on":false}`)).To(BeFalse())
})
