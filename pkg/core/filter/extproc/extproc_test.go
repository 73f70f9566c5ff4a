package extproc_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/extproc"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

func TestExtProc(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "extproc")
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-extproc shows the messages.
var _ = DescribeTable("A processor is told of, with what it gets", func(p extproc.Processor, says string) {
	r, err := filtertest.Request(extproc.Filter(), ir.Filters{"extProc": &p}, nil, http.MethodPost)
	Expect(err).NotTo(HaveOccurred())
	Expect(extproc.Filter().Describe(r)).To(Equal(says))
},
	Entry(nil, extproc.Processor{Cluster: "p", RequestHeaders: true, ResponseBody: "streamed", Allow: true},
		"sends cluster p the headers of the request, the body of the answer, which may change them or answer itself; "+
			"they pass unchanged if it is unavailable"),
	Entry("if it must be available", extproc.Processor{Cluster: "p", ResponseHeaders: true, RequestBody: "buffered"},
		"sends cluster p the body of the request, the headers of the answer, which may change them or answer itself; "+
			"503 if it is unavailable"),
)
