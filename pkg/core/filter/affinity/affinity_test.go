package affinity_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/affinity"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func TestAffinity(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "affinity")
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-affinity shows the messages.
var _ = Describe("route_filter_affinity", func() {
	It("does not rename a discovered cluster, because its assignment goes by its name", func() {
		r := &ir.Route{Forward: &ir.Forward{Clusters: []ir.WeightedCluster{
			{Cluster: &ir.Cluster{Name: "a"}}, {Cluster: &ir.Cluster{Name: "b", Discovered: true}},
		}}}
		config, spec := affinity.Filter().Config, &model.AffinityFilter{By: model.ByAddress}
		Expect(config.Route(r, spec, seam.Place{})).To(Succeed())
		Expect(config.Finish(r, spec, seam.Place{})).To(Succeed())
		Expect(r.Forward.Clusters[0].Name).To(Equal("a/hash"))
		Expect(r.Forward.Clusters[1].Name).To(Equal("b"))
	})

	// address returns the address of the endpoint that a request with a cookie goes to.
	address := func(cookie string) string {
		GinkgoHelper()
		f, exact := affinity.Filter(), ir.Filters{"affinity": &affinity.Affinity{Cookie: "node", Exact: true}}
		r, err := filtertest.Request(f, nil, exact, "GET", "cookie: "+cookie)
		Expect(err).NotTo(HaveOccurred())
		found, err := f.Endpoint(r)
		Expect(err).NotTo(HaveOccurred())
		return found
	}
	encoded := func(address string) string { return base64.StdEncoding.EncodeToString(fmt.Append(nil, address)) }

	DescribeTable("reads the endpoint in a cookie", func(cookie, want string) {
		Expect(address(cookie)).To(Equal(want))
	},
		Entry("none", "a=b", ""),
		Entry("an address", "a=b; node="+encoded("192.0.2.1:80"), "192.0.2.1:80"),
		Entry("as a message", "node="+encoded("\n\x0c192.0.2.1:80\x10\x05"), "192.0.2.1:80"),
		Entry("quoted", `node="`+encoded("192.0.2.2:80")+`"`, "192.0.2.2:80"),
		Entry("the first of two", "node="+encoded("192.0.2.2:80")+"; node="+encoded("192.0.2.1:80"), "192.0.2.2:80"),
		Entry("an unreadable value", "node=%%%", ""),
		Entry("the beginning of a message", "node="+encoded("\n\x7f192"), "\n\x7f192"),
	)
})
