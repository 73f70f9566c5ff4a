package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("Filters of a proxy", func() {
	// A new type is added to one of these lists.
	combine := []string{model.FilterRateLimit, model.FilterRBAC, model.FilterHeaders, model.FilterIPAccess, model.FilterCSRF}
	replace := []string{
		model.FilterJWT, model.FilterAPIKey, model.FilterBasicAuth, model.FilterAnyOf, model.FilterConsumer, model.FilterExtAuthz, model.FilterExtProc,
		model.FilterCORS, model.FilterRequestID, model.FilterTracing, model.FilterAccessLog, model.FilterBodyLimit,
		model.FilterCompress, model.FilterErrorPage, model.FilterFault, model.FilterMaintenance, model.FilterLua, model.FilterGRPCWeb,
	}
	refused := []string{
		model.FilterOIDC, model.FilterAffinity, model.FilterCanary, model.FilterMirror, model.FilterHostRewrite,
		model.FilterRedirect, model.FilterDirectResponse, model.FilterGRPCJSON,
	}

	It("are of types that say what they do there, or why they cannot be there", func() {
		var combining, replacing, not []string
		for _, name := range model.ConfigTypes(model.KindFilter) {
			f := &model.Filter{Type: name}
			switch {
			case !f.FitsOn(model.KindProxy):
				Expect(f.ProxyRefusal()).To(MatchRegexp(`^(names|is about|answers|has) `), name)
				not = append(not, name)
			case model.Combines(name):
				combining = append(combining, name)
			default:
				replacing = append(replacing, name)
			}
		}
		Expect(combining).To(ConsistOf(combine))
		Expect(replacing).To(ConsistOf(replace))
		Expect(not).To(ConsistOf(refused))
		Expect((&model.Filter{Type: "none"}).FitsOn(model.KindProxy)).To(BeFalse())
	})

	DescribeTable("are replaced by a filter of a service", func(own, outer string, replaced bool) {
		Expect(model.Replaces(own, outer)).To(Equal(replaced))
	},
		Entry(nil, model.FilterCORS, model.FilterCORS, true), Entry(nil, model.FilterCORS, model.FilterJWT, false),
		Entry(nil, model.FilterIPAccess, model.FilterIPAccess, false), Entry(nil, model.FilterHeaders, model.FilterHeaders, false),
		Entry(nil, model.FilterJWT, model.FilterBasicAuth, true), Entry(nil, model.FilterOIDC, model.FilterJWT, true),
		Entry(nil, model.FilterAnyOf, model.FilterAPIKey, true), Entry(nil, model.FilterAPIKey, model.FilterAnyOf, true),
		Entry(nil, model.FilterJWT, model.FilterAPIKey, false), Entry(nil, model.FilterAPIKey, model.FilterJWT, false),
		Entry(nil, model.FilterAnyOf, model.FilterBasicAuth, true), Entry(nil, model.FilterBasicAuth, model.FilterRBAC, false),
	)
})
