package snapshot_test

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("The snapshot of an Envoy that listens only on the loopback", func() {
	object := snapshot.ObjectRef{Kind: "proxy", Name: "gw"}
	listener := func(name, address string, port uint32) *snapshot.Resource {
		GinkgoHelper()
		return must(snapshot.NewListener(&listenerv3.Listener{
			Name: name, StatPrefix: "kept",
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
			}}},
		}, object))
	}
	of := func(listeners ...*snapshot.Resource) *snapshot.Snapshot {
		b := snapshot.NewBuilder(head(), nil)
		b.SetHost("one", &snapshot.Parts{Host: host("one"), Domain: "one"})
		b.SetListeners(listeners, snapshot.Named{})
		return b.Snapshot(7)
	}

	DescribeTable("has the listener's port on the loopback, and its name",
		func(name, address, wantName, wantAddress string) {
			first := of(listener(name, address, 8080))
			moved := first.OnLoopback()
			Expect(moved.Listeners).To(HaveLen(1))
			got := &listenerv3.Listener{}
			Expect(proto.Unmarshal(moved.Listeners[0].Body.GetValue(), got)).To(Succeed())
			Expect(got.GetName()).To(Equal(wantName))
			Expect(moved.Listeners[0].Name).To(Equal(wantName))
			Expect(got.GetAddress().GetSocketAddress().GetAddress()).To(Equal(wantAddress))
			Expect(got.GetAddress().GetSocketAddress().GetPortValue()).To(BeEquivalentTo(8080))
			Expect(got.GetStatPrefix()).To(Equal("kept"))
			Expect(moved.Listeners[0].Objects).To(Equal([]snapshot.ObjectRef{object}))
			Expect(names(first.Listeners)).To(Equal([]string{name}), "the snapshot of the others does not change")
		},
		Entry("every network", "http-0.0.0.0:8080", "0.0.0.0", "http-127.0.0.1:8080", "127.0.0.1"),
		Entry("one network", "https-10.1.2.3:8080", "10.1.2.3", "https-127.0.0.1:8080", "127.0.0.1"),
		Entry("IPv6", "http-[::]:8080", "::", "http-[::1]:8080", "::1"),
		Entry("IPv4 in IPv6", "http-[::ffff:10.1.2.3]:8080", "::ffff:10.1.2.3", "http-127.0.0.1:8080", "127.0.0.1"),
		Entry("a loopback", "http-127.0.0.5:8080", "127.0.0.5", "http-127.0.0.5:8080", "127.0.0.5"),
		Entry("another name", "edge", "0.0.0.0", "edge", "127.0.0.1"),
	)

	It("has everything else, and is the same for all such Envoys", func() {
		s := of(listener("https-0.0.0.0:8443", "0.0.0.0", 8443), listener("http-0.0.0.0:8080", "0.0.0.0", 8080))
		moved := s.OnLoopback()
		Expect(moved).To(BeIdenticalTo(s.OnLoopback()))
		Expect(moved.OnLoopback()).To(BeIdenticalTo(moved))
		Expect(names(moved.Listeners)).To(Equal([]string{"http-127.0.0.1:8080", "https-127.0.0.1:8443"}))
		Expect(moved.Revision).To(BeEquivalentTo(7))
		Expect(moved.Hosts).To(Equal(s.Hosts))
		Expect(moved.Routes(moved.Hosts)).To(BeIdenticalTo(s.Routes(s.Hosts)))
		Expect(snapshot.Empty(3).OnLoopback().Revision).To(BeEquivalentTo(3))
	})

	It("leaves out a listener whose address family has no loopback", func() {
		pipe := must(snapshot.NewListener(&listenerv3.Listener{
			Name: "pipe", Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/a"}}},
		}))
		Expect(of(pipe).OnLoopback().Listeners).To(BeEmpty())
	})
})
