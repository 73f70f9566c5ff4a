package snapshot_test

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
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
