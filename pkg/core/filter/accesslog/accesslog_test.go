package accesslog_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/accesslog"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func TestAccessLog(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "accesslog")
}

// test/e2e shows what is in the logs, and the golden case filter-accesslog shows the messages.
var _ = DescribeTable("route_filter_accesslog says what it does", func(ofHost, ofRoute []string, says string) {
	f := accesslog.Filter()
	var h ir.Host
	Expect(f.Config.Host(&h, &model.AccessLogFilter{Logs: ofHost}, seam.Place{})).To(Succeed())
	var r ir.Route
	if ofRoute != nil {
		Expect(f.Config.Route(&r, &model.AccessLogFilter{Logs: ofRoute}, seam.Place{})).To(Succeed())
	}
	request, err := filtertest.Request(f, h.Filters, r.Filters, "GET")
	Expect(err).NotTo(HaveOccurred())
	Expect(f.Describe(request)).To(Equal(says))
},
	Entry("for a service", []string{"a", "b"}, nil, "the request is in the logs a, b, and in those that are always written"),
	Entry("for a route instead", []string{"a"}, []string{}, "the request is in no log but those that are always written"),
)
