package requestid_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/requestid"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func TestRequestID(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "requestid")
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-requestid shows the messages.
var _ = DescribeTable("http_filter_requestid says what it does",
	func(config model.RequestIDFilter, sent, says, forwarded string) {
		var r ir.Route
		f := requestid.Filter()
		Expect(f.Config.Route(&r, &config, seam.Place{})).To(Succeed())
		messages, err := f.Route(&r)
		Expect(err).NotTo(HaveOccurred())
		Expect(messages).To(HaveLen(1))
		packed, err := anypb.New(messages[0].Config)
		Expect(err).NotTo(HaveOccurred())
		request := seam.Request{
			Headers: map[string][]string{"x-request-id": {"new"}},
			Route:   &routev3.Route{TypedPerFilterConfig: map[string]*anypb.Any{f.Name: packed}},
		}
		if sent != "" {
			request.Headers["x-envoy-client-request-id"] = []string{sent}
		}
		Expect(f.Describe(request)).To(Equal(says))
		after, err := f.Change(request)
		Expect(err).NotTo(HaveOccurred())
		Expect(after.Headers).To(Equal(map[string][]string{"x-request-id": {forwarded}}))
	},
	Entry("no ID is sent", model.RequestIDFilter{TakeOver: true}, "", "would keep the client's X-Request-Id, and it sent none", "new"),
	Entry("one is sent", model.RequestIDFilter{TakeOver: true, Echo: true}, "a-1", "keeps the client's X-Request-Id; the response has it too", "a-1"),
	Entry("one is sent in vain", model.RequestIDFilter{}, "a-1", "the request has a new X-Request-Id", "new"),
)
