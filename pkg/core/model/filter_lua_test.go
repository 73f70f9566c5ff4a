package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A script", func() {
	fault := func(n int) []model.FieldError {
		return (&model.Filter{Name: "f", Type: model.FilterLua, Config: model.JSON(`{"script":"` + strings.Repeat("-", n) + `"}`)}).Validate()
	}

	It("uses each upstream that it may call, once", func() {
		f := &model.Filter{Name: "f", Type: model.FilterLua, Config: model.JSON(`{"script":"a","upstreams":["blue","green","blue"]}`)}
		Expect(f.Parse().Names()).To(Equal([]model.Key{model.UpstreamKey("blue"), model.UpstreamKey("green")}))
		f.Config = model.JSON(`{"script":"a","upstreams":["` + strings.Repeat(`a","`, 20) + `b"]}`)
		Expect(f.Validate()).To(Equal([]model.FieldError{{Field: "Filter_config.upstreams", Message: "has 21 names; at most 20 are allowed"}}))
	})

	It("names each of at most 20 upstreams", func() {
		Expect(faultsOf(model.FilterLua, `{"script":"a","upstreams":`+names("a", 20)+`}`)).To(BeEmpty())
		Expect(faultsOf(model.FilterLua, `{"script":"a","upstreams":["a","b c"]}`)).To(Equal([]string{`.upstreams "b c" may contain only the characters A-Z a-z 0-9 . _ -`}))
	})

	It("has between one and 16,384 bytes", func() {
		Expect(fault(0)).To(Equal([]model.FieldError{{Field: "Filter_config.script", Message: "is required"}}))
		Expect(fault(16384)).To(BeEmpty())
		Expect(fault(16385)).To(Equal([]model.FieldError{{Field: "Filter_config.script", Message: "has 16385 bytes; at most 16384 are allowed"}}))
	})
})
