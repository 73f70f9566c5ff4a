package maintenance_test

import (
	"net/http"
	"net/netip"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/maintenance"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

func TestMaintenance(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "maintenance")
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-maintenance shows the messages.
var _ = DescribeTable("A service is closed", func(except, path string, status int, says string, lines ...string) {
	f := maintenance.Filter()
	closed := &maintenance.Response{
		Status: 410, Body: "gone\n", ContentType: "text/plain", Except: []netip.Prefix{netip.MustParsePrefix(except)},
	}
	r, err := filtertest.Request(f, ir.Filters{"maintenance": closed}, nil, http.MethodGet, lines...)
	Expect(err).NotTo(HaveOccurred())
	r.Path = path
	refusal, err := f.Refuse(r)
	Expect(err).NotTo(HaveOccurred())
	if status == 0 {
		Expect(refusal).To(BeNil())
		Expect(f.Describe(r)).To(Equal("is closed for others, and allows this request: " + says))
		return
	}
	Expect(refusal).To(Equal(&seam.Refusal{
		Code: "maintenance", Status: status, Body: says, Message: "service shop is closed by a vh_filter_maintenance, " +
			"from which neither the address 192.0.2.7 nor the path is exempt",
	}))
},
	Entry(nil, "192.0.2.0/30", "/", 410, "gone\n"),
	Entry("for calls too", "192.0.2.0/30", "/", 503, "closed for maintenance", "Content-Type: application/grpc"),
	Entry("except for an address", "192.0.2.0/29", "/", 0, "the address 192.0.2.7 is in 192.0.2.0/29"),
	Entry("except for a challenge", "10.0.0.0/8", "/.well-known/acme-challenge/a-_9", 0,
		"the path /.well-known/acme-challenge/a-_9 stays open"),
	Entry("even for a path that only looks like a challenge", "10.0.0.0/8", "/.well-known/a/b.c", 410, "gone\n"),
	Entry("even for a name with an encoded slash", "10.0.0.0/8", "/.well-known/a%3b", 410, "gone\n"),
)
