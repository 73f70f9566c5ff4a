package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = It("Compression without a list uses every algorithm", func() {
	f, _ := (&model.Filter{Name: "f", Type: model.FilterCompress, Config: `{}`}).Parse().Spec.(*model.CompressFilter)
	Expect(f.Algorithms).To(Equal([]string{"br", "gzip", "zstd"}))
	f, _ = (&model.Filter{Name: "f", Type: model.FilterCompress, Config: `{"algorithms":["zstd"]}`}).Parse().Spec.(*model.CompressFilter)
	Expect(f.Algorithms).To(Equal([]string{"zstd"}))
})
