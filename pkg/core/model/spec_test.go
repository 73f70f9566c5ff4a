package model_test

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A type of filter or global config", func() {
	It("is not one that this version refuses", func() {
		types := slices.Concat(model.ConfigTypes(model.KindFilter), model.ConfigTypes(model.KindGlobalConfig))
		Expect(types).To(ContainElements(model.FilterOIDC, model.GlobalConfigOAuth))
		for _, name := range model.LaterTypes() {
			Expect(types).NotTo(ContainElement(name), "take it out of laterTypes")
		}
	})
})
