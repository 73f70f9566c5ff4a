package precheck_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
)

var _ = DescribeTable("A script",
	func(allowed bool, script, why string) {
		config, err := json.Marshal(map[string]string{"script": script})
		Expect(err).NotTo(HaveOccurred())
		f := &model.Filter{Name: "f", Type: model.FilterLua, Config: model.JSON(config)}
		_, _, err = ruled(precheck.Rules{Lua: allowed}, nil, insert(f))
		if why == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(model.IsKind(err, model.Unworkable)).To(BeTrue())
		Expect(err).To(MatchError(ContainSubstring("/filter/f cannot work: " + why)))
	},
	Entry("for requests", true, "function envoy_on_request(h) end", ""),
	Entry("for responses", true, "local n = 0 envoy_on_response = function(h) n = n + 1 end", ""),
	Entry("if scripts are not allowed", false, "function envoy_on_request(h) end", "the gateway runs no scripts"),
	Entry("with a syntax error", true, "function envoy_on_request(h)\nif then end end", `its script has an error in line 2, at "then"`),
	Entry("that ends too early", true, "function envoy_on_request(h)", `its script ends too early, after ")"`),
	Entry("with a local hook", true, "local function envoy_on_request(h) end", "its script defines neither envoy_on_request nor envoy_on_response"),
	Entry("with a hook in a table", true, "local m = {} function m.envoy_on_request(h) end", "its script defines neither envoy_on_request nor envoy_on_response"),
)
