package translate_test

import (
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = It("The model knows each field of the access log by name", func() {
	formats := translate.RequestFormats(ir.Listener{TLS: &ir.TLS{}, Tracing: &ir.Tracing{}})
	Expect(slices.Collect(maps.Keys(formats))).To(ConsistOf(model.LogFieldNames()))
})
