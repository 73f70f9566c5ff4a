package snapshot_test

import (
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

func names(list []*snapshot.Resource) (names []string) {
	for _, r := range list {
		names = append(names, r.Name)
	}
	return names
}

var _ = Describe("A builder", func() {
	secret := func(name string) *snapshot.Resource { return must(snapshot.NewSecret(&tlsv3.Secret{Name: name})) }
	extension := func(name, content string) *snapshot.Resource {
		return must(snapshot.NewExtension(&corev3.TypedExtensionConfig{Name: name, TypedConfig: &anypb.Any{TypeUrl: content}}))
	}
	parts := func(name string, named snapshot.Named) *snapshot.Parts {
		return &snapshot.Parts{Host: host(name), Domain: name, Named: named}
	}

	It("has the secrets and extensions that hosts and listeners name, sorted, as long as one of them does", func() {
		b := snapshot.NewBuilder(head(), nil)
		Expect(b.Snapshot(1).Secrets).To(BeEmpty())
		b.SetHost("one", parts("one", snapshot.Named{Secrets: []*snapshot.Resource{secret("s"), secret("hmac")}}))
		b.SetHost("two", parts("two", snapshot.Named{
			Secrets: []*snapshot.Resource{secret("s")}, Extensions: []*snapshot.Resource{extension("jwt", "a")},
		}))
		b.SetListeners(nil, snapshot.Named{Extensions: []*snapshot.Resource{extension("jwt", "a"), extension("basic_auth/key", "a")}})
		first := b.Snapshot(1)
		Expect(names(first.Secrets)).To(Equal([]string{"hmac", "s"}))
		Expect(names(first.Extensions)).To(Equal([]string{"basic_auth/key", "jwt"}))

		b.SetHost("one", nil)
		b.SetListeners(nil, snapshot.Named{Extensions: []*snapshot.Resource{extension("jwt", "b")}})
		second := b.Snapshot(2)
		Expect(names(second.Secrets)).To(Equal([]string{"s"}))
		Expect(names(second.Extensions)).To(Equal([]string{"jwt"}))
		Expect(second.Extensions[0].Version).To(Equal(extension("jwt", "b").Version), "the last form that was set")
		Expect(names(first.Secrets)).To(Equal([]string{"hmac", "s"}), "a snapshot does not change")
	})

	It("gives clusters the endpoints of their upstreams, whenever they change", func() {
		// port is the port of each upstream's endpoint. An upstream without one is not discovered.
		port := map[string]uint32{}
		assign := func(cluster *snapshot.Resource) *snapshot.Resource {
			locality := &endpointv3.LocalityLbEndpoints{}
			for _, u := range cluster.Objects {
				if port[u.Name] == 0 {
					continue
				}
				address := &corev3.SocketAddress{Address: "192.0.2.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port[u.Name]}}
				locality.LbEndpoints = append(locality.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
					Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: address}}},
				}})
			}
			if locality.LbEndpoints == nil {
				return nil
			}
			// The name is that without a call.
			name, _, _ := strings.Cut(cluster.Name, "/")
			a := &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{locality}}
			return must(snapshot.NewAssignment(a, cluster.Objects...))
		}
		upstream := func(name string) snapshot.ObjectRef { return snapshot.ObjectRef{Kind: "upstream", Name: name} }
		cluster := func(kind clusterv3.Cluster_DiscoveryType, name string, upstreams ...snapshot.ObjectRef) snapshot.Named {
			return snapshot.Named{Clusters: []*snapshot.Resource{must(snapshot.NewCluster(&clusterv3.Cluster{
				Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: kind},
			}, upstreams...))}}
		}
		const eds, static = clusterv3.Cluster_EDS, clusterv3.Cluster_STATIC
		ports := func(b *snapshot.Builder) map[string][]uint32 {
			found := map[string][]uint32{}
			for _, r := range b.Snapshot(1).Endpoints {
				var a endpointv3.ClusterLoadAssignment
				Expect(r.Body.UnmarshalTo(&a)).To(Succeed())
				Expect(a.GetClusterName()).To(Equal(r.Name))
				for _, e := range a.GetEndpoints()[0].GetLbEndpoints() {
					found[r.Name] = append(found[r.Name], e.GetEndpoint().GetAddress().GetSocketAddress().GetPortValue())
				}
			}
			return found
		}
		b := snapshot.NewBuilder(head(), nil)
		b.AssignWith(assign)
		// move gives an upstream another port and reports whether the proxy uses it.
		move := func(name string, to uint32) bool {
			port[name] = to
			return b.MoveEndpoints(upstream(name))
		}
		Expect(move("auth", 1)).To(BeFalse(), "nothing uses it")
		Expect(ports(b)).To(BeEmpty())
		b.SetHost("one", parts("one", cluster(eds, "auth/2", upstream("auth"))))
		Expect(ports(b)).To(Equal(map[string][]uint32{"auth/2": {1}}))
		b.SetHost("two", parts("two", cluster(eds, "auth+web", upstream("auth"), upstream("web"))))
		b.SetHost("three", parts("three", cluster(eds, "auth/3", upstream("auth"))))
		Expect(ports(b)).To(Equal(map[string][]uint32{"auth+web": {1}, "auth/2": {1}, "auth/3": {1}}))
		Expect(move("web", 7)).To(BeTrue())
		Expect(ports(b)).To(Equal(map[string][]uint32{"auth+web": {1, 7}, "auth/2": {1}, "auth/3": {1}}))
		Expect(move("auth", 2)).To(BeTrue())
		Expect(ports(b)).To(Equal(map[string][]uint32{"auth+web": {2, 7}, "auth/2": {2}, "auth/3": {2}}))
		b.SetHost("two", nil)
		b.SetHost("three", nil)
		Expect(ports(b)).To(Equal(map[string][]uint32{"auth/2": {2}}))
		Expect(move("web", 8)).To(BeFalse(), "nothing uses it any more")
		Expect(move("auth", 3)).To(BeTrue(), "calls use it")
		Expect(ports(b)).To(Equal(map[string][]uint32{"auth/2": {3}}))
		b.SetHost("one", parts("one", cluster(static, "auth/2", upstream("auth"))))
		Expect(ports(b)).To(BeEmpty(), "its endpoints are not discovered any more")
		Expect(move("auth", 0)).To(BeFalse())
		b.SetHost("one", parts("one", cluster(eds, "auth/2", upstream("auth"))))
		Expect(ports(b)).To(BeEmpty(), "there is no assignment")
		b.SetHost("one", nil)
		Expect(ports(b)).To(BeEmpty())
	})

	It("keeps a resource if a listener names the same one again", func() {
		b := snapshot.NewBuilder(head(), nil)
		b.SetListeners(nil, snapshot.Named{Extensions: []*snapshot.Resource{extension("jwt", "a")}})
		before := b.Snapshot(1).Extensions[0]
		b.SetListeners(nil, snapshot.Named{Extensions: []*snapshot.Resource{extension("jwt", "a")}})
		Expect(b.Snapshot(2).Extensions[0]).To(BeIdenticalTo(before))
	})
})

var _ = Describe("A host that an Envoy refused", func() {
	It("answers 503 without the filters that may have been refused", func() {
		filter := map[string]*anypb.Any{"f": {TypeUrl: "x"}}
		route := must(snapshot.NewRoute(&routev3.Route{Match: prefix("/"), Action: to("blue")}))
		h := must(snapshot.NewHost(
			&routev3.VirtualHost{Name: "shop", Domains: []string{"shop.test"}, TypedPerFilterConfig: filter},
			[]*snapshot.Route{route}, snapshot.ObjectRef{Kind: "service", Name: "shop"},
		))
		Expect(must(h.VirtualHost()).GetTypedPerFilterConfig()).To(HaveKey("f"))
		closed := head().Unavailable(h)
		vh := must(closed.VirtualHost())
		Expect(vh.GetTypedPerFilterConfig()).To(BeEmpty())
		Expect(vh.GetName()).To(Equal("shop"))
		Expect(vh.GetDomains()).To(Equal([]string{"shop.test"}))
		Expect(vh.GetRoutes()).To(HaveLen(1))
		Expect(vh.GetRoutes()[0].GetDirectResponse().GetStatus()).To(BeEquivalentTo(503))
		Expect(closed.Unavailable).To(BeTrue())
		Expect(closed.Object).To(Equal(h.Object))
	})
})
