package main

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

func TestEnvoys(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "envoys")
}

// message returns a response as it is on the wire.
func message(typeURL string) mem.BufferSlice {
	b, err := proto.Marshal(&discoveryv3.DeltaDiscoveryResponse{
		SystemVersionInfo: "7", TypeUrl: typeURL, Nonce: "n1", RemovedResources: []string{"gone"},
		Resources: []*discoveryv3.Resource{{Name: "a", Version: "1", Resource: &anypb.Any{TypeUrl: "t", Value: []byte("one u-new00001 two")}}},
	})
	Expect(err).NotTo(HaveOccurred())
	return mem.BufferSlice{mem.SliceBuffer(b[:10]), mem.SliceBuffer(b[10:])}
}

var _ = Describe("A response", func() {
	const routes, clusters = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "type.googleapis.com/envoy.config.cluster.v3.Cluster"

	DescribeTable("is read only as far as needed",
		func(typeURL, expected string, holds bool) {
			f := &fleet{streams: 1}
			f.expect(expected)
			r := response{fleet: f}
			Expect(codec{}.Unmarshal(message(typeURL), &r)).To(Succeed())
			Expect(r.typeURL).To(Equal(typeURL))
			Expect(r.nonce).To(Equal("n1"))
			Expect(r.holds != nil).To(Equal(holds))
		},
		Entry("the text is in the routes", routes, "u-new00001", true),
		Entry("another text is not", routes, "u-new00002", false),
		Entry("clusters do not count", clusters, "u-new00001", false),
	)

	It("is an error if it is truncated", func() {
		r := response{fleet: &fleet{}}
		Expect(codec{}.Unmarshal(message(routes)[:1], &r)).NotTo(Succeed())
	})
})

var _ = Describe("An expectation", func() {
	It("is met when every stream meets it", func() {
		f := &fleet{streams: 2}
		f.expect("text")
		e := f.current.Load()
		e.met()
		Expect(e.all).NotTo(BeClosed())
		e.met()
		Expect(e.all).To(BeClosed())
	})
})
