package server_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// secret is a resource with a body of some size.
func secret(name string, size int) *snapshot.Resource {
	GinkgoHelper()
	r, err := snapshot.NewSecret(&tlsv3.Secret{Name: name, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
		Secret: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: strings.Repeat("x", size)}},
	}}})
	Expect(err).NotTo(HaveOccurred())
	return r
}

// routes is a route configuration of some hosts.
func routes(hosts int) *snapshot.Resource {
	GinkgoHelper()
	head, err := snapshot.NewRouteHead(&routev3.RouteConfiguration{Name: "rc"}, unavailable(), nil)
	Expect(err).NotTo(HaveOccurred())
	var list []*snapshot.Host
	for i := range hosts {
		name := fmt.Sprintf("host-%03d", i)
		h, err := snapshot.NewHost(&routev3.VirtualHost{Name: name, Domains: []string{name}}, nil, snapshot.ObjectRef{Kind: "service", Name: name})
		Expect(err).NotTo(HaveOccurred())
		list = append(list, h)
	}
	return head.Join(list)
}

// toProto returns the message as gRPC would encode it.
func toProto(m plan.Message) *discoveryv3.DeltaDiscoveryResponse {
	out := &discoveryv3.DeltaDiscoveryResponse{
		TypeUrl: m.Type, Nonce: m.Nonce, SystemVersionInfo: strconv.FormatInt(m.Revision, 10), RemovedResources: m.Removed,
	}
	for _, r := range m.Resources {
		out.Resources = append(out.Resources, &discoveryv3.Resource{
			Name: r.Name, Version: r.Version, Resource: &anypb.Any{TypeUrl: r.Body.GetTypeUrl(), Value: r.Body.GetValue()},
		})
	}
	return out
}

var _ = Describe("the codec", func() {
	It("encodes responses as protobuf does", func() {
		rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a seeded test
		text := func(most int) string { return strings.Repeat("ä", rng.IntN(most)) }
		for range 500 {
			m := plan.Message{Type: "type.googleapis.com/" + text(80), Nonce: strconv.Itoa(rng.IntN(1000)), Revision: rng.Int64()}
			for range rng.IntN(5) {
				m.Resources = append(m.Resources, secret("s"+text(100), 1+rng.IntN(300)))
			}
			for range rng.IntN(3) { // lengths whose number has two and three bytes
				m.Resources = append(m.Resources, routes(rng.IntN(300)), secret("s", 1+rng.IntN(40_000)))
			}
			for range rng.IntN(4) {
				m.Removed = append(m.Removed, text(100))
			}
			buffers, err := server.Marshal(m)
			Expect(err).NotTo(HaveOccurred())
			want := toProto(m)
			Expect(buffers.Len()).To(Equal(proto.Size(want)))
			var got discoveryv3.DeltaDiscoveryResponse
			Expect(proto.Unmarshal(buffers.Materialize(), &got)).To(Succeed())
			Expect(proto.Equal(&got, want)).To(BeTrue(), "got %v, want %v", &got, want)
			Expect(got.ProtoReflect().GetUnknown()).To(BeEmpty())
		}
	})

	It("shares the bytes of a resource among all responses", func() {
		r := routes(100)
		var first [2]*byte
		for i := range first {
			buffers, err := server.Marshal(plan.Message{Type: snapshot.RouteType, Nonce: strconv.Itoa(i), Resources: []*snapshot.Resource{r}})
			Expect(err).NotTo(HaveOccurred())
			Expect(buffers).To(HaveLen(2))
			first[i] = &buffers[1].ReadOnlyData()[0]
			buffers.Free() // as gRPC does when it is sent
		}
		Expect(first[0]).To(BeIdenticalTo(first[1]))
		Expect(first[0]).To(BeIdenticalTo(&r.Wire()[0]))
	})

	It("shares the bytes of all clusters among the Envoys that connect first", func() {
		want := withCluster(1, "blue")
		var first [2]*byte
		for i := range first {
			s := plan.NewStream(plan.Options{})
			s.Want(want)
			s.Subscribe(snapshot.ClusterType, nil, nil)
			messages, _ := s.Next(time.Unix(1, 0))
			Expect(messages).To(HaveLen(1))
			buffers, err := server.Marshal(messages[0])
			Expect(err).NotTo(HaveOccurred())
			Expect(buffers).To(HaveLen(2))
			first[i] = &buffers[1].ReadOnlyData()[0]
			var got discoveryv3.DeltaDiscoveryResponse
			Expect(proto.Unmarshal(buffers.Materialize(), &got)).To(Succeed())
			Expect(proto.Equal(&got, toProto(messages[0]))).To(BeTrue())
			Expect(got.GetResources()).To(HaveLen(1))
		}
		Expect(first[0]).To(BeIdenticalTo(first[1]))
	})

	It("refuses a resource without bytes", func() {
		_, err := server.Marshal(plan.Message{Type: snapshot.ClusterType, Resources: []*snapshot.Resource{{Name: "blue", Version: "1"}}})
		Expect(err).To(MatchError(`encoding resource "blue" of ` + snapshot.ClusterType + `: it has no bytes; make it with a function of package snapshot`))
	})

	It("encodes and decodes everything else as gRPC does", func() {
		c := server.NewCodec()
		Expect(c.Name()).To(Equal("proto"))
		want := &loadv3.LoadStatsResponse{Clusters: []string{"blue"}}
		buffers, err := c.Marshal(want)
		Expect(err).NotTo(HaveOccurred())
		var got loadv3.LoadStatsResponse
		Expect(c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(buffers.Materialize())}, &got)).To(Succeed())
		Expect(proto.Equal(&got, want)).To(BeTrue())
		_, err = c.Marshal("text")
		Expect(err).To(HaveOccurred())
	})
})
