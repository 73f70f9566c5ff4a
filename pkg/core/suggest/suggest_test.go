package suggest_test

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
)

func TestSuggest(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "suggest")
}

var _ = DescribeTable("Nearest", func(name, want string, wantNear bool) {
	best, near := suggest.Nearest(name, []string{"Upstream_ip", "Upstream_port", "fqdn"})
	Expect(best).To(Equal(want))
	Expect(near).To(Equal(wantNear))
},
	Entry("a swap", "Upstream_prot", "Upstream_port", true),
	Entry("another letter case", "upstream_PORT", "Upstream_port", true),
	Entry("nothing alike", "zzzzzz", "fqdn", false),
	Entry("empty", "", "fqdn", false),
	Entry("very long", strings.Repeat("Upstream_port", 100), "Upstream_port", false),
)

var _ = It("has no suggestion if nothing is known", func() {
	best, near := suggest.Nearest("a", nil)
	Expect(best).To(BeEmpty())
	Expect(near).To(BeFalse())
})
