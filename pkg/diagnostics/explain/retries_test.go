package explain_test

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("Retries", func() {
	setting := func(name, value string) *corev3.HeaderValueOption {
		return &corev3.HeaderValueOption{
			Header: &corev3.HeaderValue{Key: name, Value: value}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		}
	}
	// forwarding is an Envoy whose route configuration adds headers.
	forwarding := func(mostSpecificWins bool, policy *routev3.RetryPolicy, removed []string, added ...*corev3.HeaderValueOption) explain.State {
		GinkgoHelper()
		have := state(host("shop", []string{"*"}, &routev3.Route{
			Name: "cart", Match: prefixed("/"), RequestHeadersToRemove: removed, Action: &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "blue"}, RetryPolicy: policy,
			}},
		}))
		have.Clusters = []*snapshot.Resource{must(snapshot.NewCluster(&clusterv3.Cluster{Name: "blue"}))}
		have.Routes = &routev3.RouteConfiguration{
			Name: "gatehouse", MostSpecificHeaderMutationsWins: mostSpecificWins, RequestHeadersToAdd: added,
		}
		return have
	}
	on, often := setting("x-envoy-retry-on", "connect-failure,refused-stream"), setting("x-envoy-max-retries", "2")
	both := []string{"x-envoy-retry-on", "x-envoy-max-retries"}
	own := &routev3.RetryPolicy{RetryOn: "5xx", NumRetries: wrapperspb.UInt32(5), PerTryTimeout: durationpb.New(time.Second)}

	forMethod := func(method string) *routev3.HeaderMatcher {
		return &routev3.HeaderMatcher{Name: ":method", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
			StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: method}},
		}}
	}
	forPost, forGet := forMethod("POST"), forMethod("GET")

	type added = []*corev3.HeaderValueOption
	DescribeTable("follow from the headers and the policy",
		func(mostSpecificWins bool, policy *routev3.RetryPolicy, removed []string, headers added, want *explain.Retries) {
			Expect(ask(forwarding(mostSpecificWins, policy, removed, headers...), "http://shop.test/").Forward.Retries).To(Equal(want))
		},
		Entry("none", true, nil, nil, nil, nil),
		Entry("headers alone", true, nil, nil, added{on, often}, &explain.Retries{Attempts: 2, On: "connect-failure,refused-stream"}),
		Entry("headers without a number", true, nil, nil, added{on}, &explain.Retries{Attempts: 1, On: "connect-failure,refused-stream"}),
		Entry("a number without conditions", true, nil, nil, added{often}, nil),
		Entry("a policy without conditions", true, &routev3.RetryPolicy{HostSelectionRetryMaxAttempts: 3}, nil, added{on, often},
			&explain.Retries{Attempts: 2, On: "connect-failure,refused-stream"}),
		Entry("one more condition", true, &routev3.RetryPolicy{RetryOn: "reset,connect-failure"}, nil, added{on, often},
			&explain.Retries{Attempts: 2, On: "connect-failure,refused-stream,reset"}),
		Entry("a policy for other methods", true, &routev3.RetryPolicy{RetryOn: "5xx", RetriableRequestHeaders: []*routev3.HeaderMatcher{forPost}}, both, added{on, often}, nil),
		Entry("a policy for this method, among others", true,
			&routev3.RetryPolicy{RetryOn: "5xx", RetriableRequestHeaders: []*routev3.HeaderMatcher{forPost, forGet}}, both, added{on, often}, &explain.Retries{Attempts: 1, On: "5xx"}),
		Entry("a policy whose route removes the headers", true, own, both, added{on, often}, &explain.Retries{Attempts: 5, On: "5xx", PerTry: "1s"}),
		Entry("a policy whose route does not", true, own, nil, added{on, often},
			&explain.Retries{Attempts: 2, On: "connect-failure,refused-stream,5xx", PerTry: "1s"}),
		Entry("a route that removes the headers", true, nil, both, added{on, often}, nil),
		Entry("a route that removes the headers before they are added", false, nil, both, added{on, often},
			&explain.Retries{Attempts: 2, On: "connect-failure,refused-stream"}),
	)

	It("ignore the headers of a client", func() {
		have := forwarding(true, nil, both, on, often)
		Expect(ask(have, "http://shop.test/", "X-Envoy-Retry-On: 5xx", "X-Envoy-Max-Retries: 9").Forward.Retries).To(BeNil())
	})

	It("are those that Envoy is configured with", func() {
		have := forwarding(true, nil, nil)
		have.Routes = translate.RouteConfiguration()
		Expect(ask(have, "http://shop.test/").Forward.Retries).To(Equal(
			&explain.Retries{Attempts: 2, On: "connect-failure,refused-stream,reset-before-request"}))
	})

	DescribeTable("are not guessed from an unknown header",
		func(added *corev3.HeaderValueOption, name string) {
			r, errs := explain.NewRequest("", "http://shop.test/", nil)
			Expect(errs).To(BeEmpty())
			_, err := explain.Explain(forwarding(true, nil, nil, added), r)
			Expect(err).To(MatchError(`explaining route "cart": header "` + name + `", which the router adds, is not known`))
		},
		Entry("with an unknown name", setting("x-envoy-retry-grpc-on", "cancelled"), "x-envoy-retry-grpc-on"),
		Entry("with an unknown action", &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: "x-envoy-retry-on", Value: "5xx"}}, "x-envoy-retry-on"),
	)
})
