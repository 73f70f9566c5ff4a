package explain_test

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("Retries", func() {
	// forwarding is an Envoy with a cluster and a route.
	forwarding := func(ofCluster, ofRoute *routev3.RetryPolicy) explain.State {
		GinkgoHelper()
		have := state(host("shop", []string{"*"}, &routev3.Route{
			Name: "cart", Match: prefixed("/"), Action: &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "blue"}, RetryPolicy: ofRoute,
			}},
		}))
		options := must(anypb.New(&httpv3.HttpProtocolOptions{
			UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
				ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
					ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{},
				},
			},
			RetryPolicy: ofCluster,
		}))
		have.Clusters = []*snapshot.Resource{must(snapshot.NewCluster(&clusterv3.Cluster{
			Name: "blue", TypedExtensionProtocolOptions: map[string]*anypb.Any{
				"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options,
			},
		}))}
		return have
	}
	often := &routev3.RetryPolicy{RetryOn: "connect-failure,refused-stream", NumRetries: wrapperspb.UInt32(2)}
	own := &routev3.RetryPolicy{RetryOn: "5xx", NumRetries: wrapperspb.UInt32(5), PerTryTimeout: durationpb.New(time.Second)}

	forMethod := func(method string) *routev3.HeaderMatcher {
		return &routev3.HeaderMatcher{Name: ":method", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
			StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: method}},
		}}
	}
	forPost, forGet := forMethod("POST"), forMethod("GET")

	DescribeTable("are those of the cluster, or else of the route",
		func(ofCluster, ofRoute *routev3.RetryPolicy, want *explain.Retries) {
			Expect(ask(forwarding(ofCluster, ofRoute), "http://shop.test/").Forward.Retries).To(Equal(want))
		},
		Entry("none", nil, nil, nil),
		Entry("the cluster's alone", often, nil, &explain.Retries{Attempts: 2, On: "connect-failure,refused-stream"}),
		Entry("the cluster's, whatever the route has", often, own, &explain.Retries{Attempts: 2, On: "connect-failure,refused-stream"}),
		Entry("the route's alone", nil, own, &explain.Retries{Attempts: 5, On: "5xx", PerTry: "1s"}),
		Entry("one, if the policy has no number", &routev3.RetryPolicy{RetryOn: "5xx"}, nil, &explain.Retries{Attempts: 1, On: "5xx"}),
		Entry("none, if the policy has no conditions", &routev3.RetryPolicy{NumRetries: wrapperspb.UInt32(2)}, nil, nil),
		Entry("none, if the policy is for other methods", nil,
			&routev3.RetryPolicy{RetryOn: "5xx", RetriableRequestHeaders: []*routev3.HeaderMatcher{forPost}}, nil),
		Entry("for this method, among others", nil,
			&routev3.RetryPolicy{RetryOn: "5xx", RetriableRequestHeaders: []*routev3.HeaderMatcher{forPost, forGet}},
			&explain.Retries{Attempts: 1, On: "5xx"}),
	)

	It("ignore the headers of a client", func() {
		have := forwarding(nil, nil)
		Expect(ask(have, "http://shop.test/", "X-Envoy-Retry-On: 5xx", "X-Envoy-Max-Retries: 9").Forward.Retries).To(BeNil())
	})

	It("are those that Envoy is configured with", func() {
		cluster := must(translate.Cluster(&ir.Cluster{
			Name: "blue", Connections: ir.Connections{ConnectTimeout: time.Second},
			Endpoints: []ir.Endpoint{{Address: "192.0.2.1", Port: 80, Weight: 1}},
		}))
		have := forwarding(nil, nil)
		have.Clusters = []*snapshot.Resource{must(snapshot.NewCluster(cluster))}
		Expect(ask(have, "http://shop.test/").Forward.Retries).To(Equal(
			&explain.Retries{Attempts: 2, On: "connect-failure,refused-stream,reset-before-request"}))
	})
})
