package explain_test

import (
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("The host", func() {
	It("is matched as the route configuration says", func() {
		Expect(translate.RouteConfiguration().GetIgnorePortInHostMatching()).To(BeTrue(), "bareHost takes the port away")
	})

	DescribeTable("is taken by the best match",
		func(asked, service, kind string) {
			all := prefixed("/")
			have := state(
				host("any", []string{"*"}, answering("r", all)), host("wide", []string{"*.test"}, answering("r", all)),
				host("narrow", []string{"*.a.test"}, answering("r", all)), host("exact", []string{"x.a.test"}, answering("r", all)),
				host("start", []string{"x.*"}, answering("r", all)), host("longstart", []string{"x.b.*"}, answering("r", all)),
			)
			a := ask(have, "http://gateway/", "Host: "+asked)
			Expect(a.Service).To(Equal(service))
			Expect(a.Hosts[0].Kind).To(Equal(kind))
		},
		Entry("exact", "x.a.test", "exact", "exact"),
		Entry("case and port", "X.A.TEST:8080", "exact", "exact"),
		Entry("the longest suffix", "y.a.test", "narrow", "suffix"),
		Entry("any depth", "z.y.a.test", "narrow", "suffix"),
		Entry("suffix before prefix", "x.c.test", "wide", "suffix"),
		Entry("the longest prefix", "x.b.other", "longstart", "prefix"),
		Entry("prefix", "x.other", "start", "prefix"),
		Entry("a dot at the end", "x.a.test.", "exact", "exact"),
		Entry("a dot before the port", "x.a.test.:80", "exact", "exact"),
		Entry("IPv6 without a port", "[::1]", "any", "any"),
		Entry("not a name below it", "a.test", "wide", "suffix"),
	)

	It("is named even if the path is bad", func() {
		have := state(host("any", []string{"*"}, answering("r", prefixed("/"))))
		a, err := explain.Explain(have, explain.Request{Method: "GET", Target: "/a/%2e%2e;/b", Headers: []explain.Header{{Name: "Host", Value: "a.test:80:81"}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Message).To(Equal(`the Host "a.test:80:81" is not a single host name or address, optionally with a port`))
	})

	DescribeTable("is refused unless it is a single host",
		func(headers ...string) {
			have := state(host("any", []string{"*"}, answering("r", prefixed("/"))))
			r := explain.Request{Method: "GET", Target: "/"}
			for _, h := range headers {
				r.Headers = append(r.Headers, explain.Header{Name: "Host", Value: h})
			}
			a, err := explain.Explain(have, r)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Code).To(Equal(explain.BadRequest))
			Expect(a.Status).To(Equal(400))
			Expect(a.Message).To(MatchRegexp(`^the Host ".*" is not a single host name or address, optionally with a port$`))
		},
		Entry("two headers", "shop.test", "other.test"),
		Entry("the same twice", "shop.test", "shop.test"),
		Entry("two in one", "shop.test,other.test"),
		Entry("two trailing dots", "shop.test.."),
		Entry("a leading dot", ".a.test"),
		Entry("two ports", "shop.test:80:81"),
		Entry("a percent sign", "shop%2etest"),
		Entry("empty", ""),
	)

	It("is forwarded to the upstream without its trailing dot", func() {
		a := ask(state(host("shop", []string{"shop.test"}, answering("r", prefixed("/")))), "http://shop.test.:8080/")
		Expect(a.Request.Host).To(Equal("shop.test:8080"))
		Expect(a.Steps).To(ContainElement(explain.Step{Code: "host", Message: `host "shop.test.:8080" is read as "shop.test:8080"`}))
	})

	It("is looked up in one service only", func() {
		a := ask(state(host("any", []string{"*"}, answering("rest", prefixed("/"))), host("shop", []string{"shop.test"}, answering("cart", prefixed("/cart")))),
			"http://shop.test/")
		Expect(a.Code).To(Equal(explain.NoRoute))
		Expect(a.Status).To(Equal(404))
		Expect(a.Message).To(Equal("no route of service shop matches, and no other service is tried"))
		Expect(a.Hosts).To(Equal([]explain.Host{
			{Service: "shop", Domain: "shop.test", Kind: "exact", Chosen: true, Message: "is the best match and takes the request"},
			{Service: "any", Domain: "*", Kind: "any", Message: "matches too, but exact shop.test wins, and no other service is tried"},
		}))
		Expect(a.Routes).To(Equal([]explain.Route{{
			Route: "cart", Checks: []explain.Check{{Code: "path_prefix", Message: `path "/" does not begin with "/cart"`}},
		}}))
	})
})

var _ = Describe("The path", func() {
	DescribeTable("is normalized",
		func(asked, seen string) {
			Expect(ask(state(), "http://h"+asked).Request.Path).To(Equal(seen))
		},
		Entry("dots", "/a/./b/../c", "/a/c"),
		Entry("escaped dots", "/a/%2E%2e/c", "/c"),
		Entry("dots with parameters", "/a/..;x=1/c", "/c"),
		Entry("above the root", "/../..", "/"),
		Entry("a dot segment at the end", "/a/.", "/a/"),
		Entry("dots that are not a segment", "/a/.../.b", "/a/.../.b"),
		Entry("slashes", "//a///b//", "/a/b/"),
		Entry("only slashes", "///", "//"),
		Entry("backslash", `/a\b`, "/a/b"),
		Entry("needless escapes", "/%41%7e%2d", "/A~-"),
		Entry("needed escapes", "/%20%3f%C3", "/%20%3f%C3"),
		Entry("what must be escaped", "/{\"<>^`|}", "/%7B%22%3C%3E%5E%60%7C%7D"),
		Entry("an invalid escape", "/%zz%", "/%zz%"),
		Entry("an escape that decoding must not complete", "/%%34%31", "/%2541"),
		Entry("the query is kept", "/a?b=/../c//d", "/a"),
	)

	DescribeTable("is refused before a route is looked up",
		func(asked, code string, status int, location string) {
			a := ask(state(host("any", []string{"*"}, answering("rest", prefixed("/")))), "http://h"+asked)
			Expect(a.Code).To(Equal(code))
			Expect(a.Status).To(Equal(status))
			Expect(a.Location).To(Equal(location))
			Expect(a.Service).To(BeEmpty())
		},
		Entry("escaped slash", "/a%2Fb?c=%2F", explain.Redirected, 307, "/a/b?c=%2F"),
		Entry("escaped backslash", "/a%5cb/../c", explain.Redirected, 307, "/a/c"),
		Entry("a fragment", "/a#b", explain.BadRequest, 400, ""),
		Entry("a NUL", "/a%00", explain.BadRequest, 400, ""),
		Entry("a dot segment with parameters that was escaped", "/a/%2e%2e;b/c", explain.BadRequest, 400, ""),
		Entry("one dot with parameters", "/a/%2E;", explain.BadRequest, 400, ""),
	)

	It("is treated as the listener is configured", func() {
		as := func(action hcmv3.HttpConnectionManager_PathWithEscapedSlashesAction) explain.Answer {
			return ask(stateWith(func(l *hcmv3.HttpConnectionManager) { l.PathWithEscapedSlashesAction = action }), "http://h/a%2Fb")
		}
		Expect(as(hcmv3.HttpConnectionManager_KEEP_UNCHANGED).Request.Path).To(Equal("/a%2Fb"))
		Expect(as(hcmv3.HttpConnectionManager_REJECT_REQUEST).Code).To(Equal(explain.BadRequest))
		Expect(as(hcmv3.HttpConnectionManager_UNESCAPE_AND_FORWARD).Request.Path).To(Equal("/a/b"))
		plain := ask(stateWith(func(l *hcmv3.HttpConnectionManager) { l.NormalizePath, l.MergeSlashes = nil, false }), "http://h/a//../b")
		Expect(plain.Request.Path).To(Equal("/a//../b"))
	})
})

var _ = Describe("A condition", func() {
	exactly := func(s string) *matcherv3.StringMatcher {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: s}}
	}
	regex := func(s string) *matcherv3.StringMatcher {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: s}}}
	}
	header := func(name string, m *matcherv3.StringMatcher, invert bool) *routev3.RouteMatch {
		match := prefixed("/")
		match.Headers = []*routev3.HeaderMatcher{{Name: name, InvertMatch: invert, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: m}}}
		return match
	}
	DescribeTable("on a header",
		func(m *routev3.RouteMatch, holds bool, message string, lines ...string) {
			a := ask(state(host("any", []string{"*"}, answering("r", m))), "http://h/", lines...)
			Expect(a.Routes[0].Matches).To(Equal(holds))
			Expect(a.Routes[0].Checks[1]).To(Equal(explain.Check{Code: "header", Holds: holds, Message: message}))
		},
		Entry("one of several values is enough", header("x-a", exactly("2"), false), true, `header x-a is "1" and "2"; it must be "2"`, "x-a: 1", "X-A: 2"),
		Entry("several values are not joined", header("x-a", exactly("1,2"), false), false, `header x-a is "1" and "2"; it must be "1,2"`, "x-a: 1", "x-a: 2"),
		Entry("values of accept are joined", header("accept", exactly("1,2"), false), true, `header accept is "1,2"; it must be "1,2"`, "accept: 1", "accept: 2"),
		Entry("an inverted condition must hold for none of them", header("x-a", exactly("2"), true), false, `header x-a is "1" and "2"; it must be present and not be "2"`, "x-a: 1", "x-a: 2"),
		Entry("an inverted condition does not hold for an absent header", header("x-a", exactly("2"), true), false, `header x-a is missing; it must be present and not be "2"`),
		Entry("an expression matches bytes", header("x-a", regex(".."), false), true, `header x-a is "é"; it must be a match of ".." as a whole`, "x-a: é"),
		Entry("Envoy sets x-forwarded-proto", header("x-forwarded-proto", exactly("http"), false), true,
			`header x-forwarded-proto is "http"; it must be "http"`, "x-forwarded-proto: https"),
		Entry("Envoy removes x-envoy-internal", header("x-envoy-internal", exactly("true"), false), false,
			`header x-envoy-internal is missing; it must be "true"`, "x-envoy-internal: true"),
		Entry("Envoy removes TE", header("te", exactly("gzip"), false), false, `header te is missing; it must be "gzip"`, "te: gzip"),
		Entry("Envoy keeps trailers in TE", header("te", exactly("trailers"), false), true, `header te is "trailers"; it must be "trailers"`, "te: gzip, trailers"),
		Entry("Envoy keeps an empty TE", header("te", exactly(""), false), true, `header te is ""; it must be ""`, "te:"),
		Entry("Envoy keeps TE with an upgrade", header("te", exactly("gzip"), false), true, `header te is "gzip"; it must be "gzip"`, "te: gzip", "Connection: Upgrade", "Upgrade: websocket"),
		Entry("Host is :authority", header("host", exactly("shop:80"), false), true, `header host is "shop:80"; it must be "shop:80"`, "Host: shop:80"),
	)

	fold := func(m *routev3.RouteMatch) *routev3.RouteMatch {
		m.CaseSensitive = wrapperspb.Bool(false)
		return m
	}
	segment := func(path string) *routev3.RouteMatch {
		return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: path}}
	}
	DescribeTable("on the path",
		func(m *routev3.RouteMatch, path string, holds bool) {
			a := ask(state(host("any", []string{"*"}, answering("r", m))), "http://h"+path)
			Expect(a.Routes[0].Matches).To(Equal(holds))
		},
		Entry("a prefix", prefixed("/shop"), "/shopping", true),
		Entry("a prefix in another letter case", prefixed("/shop"), "/Shop", false),
		Entry("a prefix that ignores letter case", fold(prefixed("/shop")), "/SHOPPING", true),
		Entry("a segment", segment("/shop"), "/shop", true),
		Entry("below a segment", segment("/shop"), "/shop/a", true),
		Entry("a path that only begins like the segment", segment("/shop"), "/shopping", false),
		Entry("a segment that ignores letter case", fold(segment("/shop")), "/Shop/a", true),
	)

	It("on the query uses the first value, undecoded", func() {
		m := prefixed("/")
		m.QueryParameters = []*routev3.QueryParameterMatcher{{
			Name: "v", QueryParameterMatchSpecifier: &routev3.QueryParameterMatcher_StringMatch{StringMatch: exactly("1")},
		}}
		have := state(host("any", []string{"*"}, answering("r", m)))
		for query, holds := range map[string]bool{"?v=1&v=2": true, "?v=2&v=1": false, "?v=%31": false, "?a&v=1": true, "?v": false, "?V=1": false} {
			Expect(ask(have, "http://h/"+query).Routes[0].Matches).To(Equal(holds), query)
		}
	})

	It("of an unknown kind is an error", func() {
		m := prefixed("/")
		m.Headers = []*routev3.HeaderMatcher{{Name: "x-a"}}
		r, _ := explain.NewRequest("", "http://h/", nil)
		_, err := explain.Explain(state(host("any", []string{"*"}, answering("odd", m))), r)
		Expect(err).To(MatchError(`explaining route "odd": condition <nil> on header "x-a" is not known`))
	})
})

var _ = Describe("A request that is forwarded", func() {
	type action = routev3.RouteAction
	endpoint := func(address string, port, weight uint32) *endpointv3.LbEndpoint {
		return &endpointv3.LbEndpoint{
			LoadBalancingWeight: wrapperspb.UInt32(weight),
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{
				Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
				}},
			}}},
		}
	}
	// forwarding is a state with one route to a cluster.
	forwarding := func(a *action, m *routev3.RouteMatch, endpoints ...*endpointv3.LbEndpoint) explain.State {
		GinkgoHelper()
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: "blue+green"}
		have := state(host("shop", []string{"*"}, &routev3.Route{Name: "cart", Match: m, Action: &routev3.Route_Route{Route: a}}))
		c, err := snapshot.NewCluster(&clusterv3.Cluster{
			Name: "blue+green", LbPolicy: clusterv3.Cluster_RANDOM, ClusterDiscoveryType: &clusterv3.Cluster_Type{},
			LoadAssignment: &endpointv3.ClusterLoadAssignment{
				ClusterName: "blue+green", Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: endpoints}},
			},
		})
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"blue", "green"}[:len(endpoints)] {
			c.Endpoints = append(c.Endpoints, snapshot.EndpointRef{ObjectRef: snapshot.ObjectRef{Kind: "upstream", Name: name}})
		}
		have.Clusters = []*snapshot.Resource{c}
		return have
	}
	two := []*endpointv3.LbEndpoint{endpoint("10.0.0.1", 80, 300), endpoint("10.0.0.2", 81, 100)}
	cart := prefixed("/cart")
	expression := func(regex, to string) *action {
		return &action{RegexRewrite: &matcherv3.RegexMatchAndSubstitute{Pattern: &matcherv3.RegexMatcher{Regex: regex}, Substitution: to}}
	}

	It("is explained with its upstreams and names", func() {
		a := ask(forwarding(&action{
			Timeout: durationpb.New(0), IdleTimeout: durationpb.New(90 * time.Second),
			RetryPolicy: &routev3.RetryPolicy{RetryOn: "connect-failure,reset", NumRetries: wrapperspb.UInt32(2), PerTryTimeout: durationpb.New(time.Second)},
		}, cart, two...), "http://Shop:80/cart?a=b")
		Expect(a.Code).To(Equal(explain.Forwarded))
		Expect(a.Status).To(BeZero())
		Expect(a.Message).To(Equal("service shop, route cart: GET Shop:80/cart?a=b goes to blue+green"))
		Expect(*a.Forward).To(Equal(explain.Forward{
			Host: "Shop:80", Path: "/cart?a=b", Timeout: "none", IdleTimeout: "1m30s",
			Retries: &explain.Retries{Attempts: 2, On: "connect-failure,reset", PerTry: "1s"},
			Clusters: []explain.Cluster{{Name: "blue+green", Weight: 1, Policy: "random", Protocol: "http", Endpoints: []explain.Endpoint{
				{Upstream: "blue", Address: "10.0.0.1", Port: 80, Weight: 300, Percent: 75},
				{Upstream: "green", Address: "10.0.0.2", Port: 81, Weight: 100, Percent: 25},
			}}},
		}))
		Expect(a.Envoy).To(Equal(explain.Names{
			Listener: "http-0.0.0.0:8080", RouteConfiguration: "gatehouse", VirtualHost: "shop", Route: "cart", Clusters: []string{"blue+green"},
		}))
		Expect(a.Filters).To(Equal([]explain.Filter{{Name: "envoy.filters.http.router", Message: "forwards the request, or answers as the route says"}}))
	})

	DescribeTable("has the shorter of its limits", func(request, stream time.Duration, want string) {
		limits := &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: durationpb.New(stream)}
		a := ask(forwarding(&action{Timeout: durationpb.New(request), MaxStreamDuration: limits}, cart, two...), "http://h/cart")
		Expect(a.Forward.Timeout).To(Equal(want))
	},
		Entry("of the stream alone", 0*time.Second, time.Hour, "1h0m0s"),
		Entry("of the request", time.Second, time.Hour, "1s"),
		Entry("of the stream", time.Minute, time.Second, "1s"),
	)

	It("names the upstream, even if another one is out of rotation", func() {
		Expect(ask(forwarding(&action{}, cart, two[0]), "http://h/cart").Forward.Clusters[0].Endpoints).To(Equal(
			[]explain.Endpoint{{Upstream: "blue", Address: "10.0.0.1", Port: 80, Weight: 300, Percent: 100}}))
	})

	It("gets 503 if the Envoy has no such cluster", func() {
		have := forwarding(&action{}, cart, two...)
		have.Clusters = nil
		a := ask(have, "http://h/cart")
		Expect(a.Code).To(Equal(explain.NoCluster))
		Expect(a.Status).To(Equal(503))
	})

	DescribeTable("is rewritten",
		func(a *action, m *routev3.RouteMatch, asked, path string) {
			Expect(ask(forwarding(a, m, two...), "http://h"+asked).Forward.Path).To(Equal(path))
		},
		Entry("prefix", &action{PrefixRewrite: "/v2"}, cart, "/cart/a?b", "/v2/a?b"),
		Entry("prefix to the root", expression("^/cart/*", "/"), cart, "/cart/a", "/a"),
		Entry("segment", &action{PrefixRewrite: "/v2"}, &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: "/cart"}}, "/cart/a", "/v2/a"),
		Entry("exact", &action{PrefixRewrite: "/v2"}, &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: "/cart"}}, "/cart?b", "/v2?b"),
		Entry("expression", expression("/([a-z]+)", `/<\1\0>\\`), cart, "/cart/a?/b", `/<cart/cart>\/<a/a>\?/b`),
		Entry("not to an empty path", expression(".*", ""), cart, "/cart?b", "/cart?b"),
	)

	It("may not upgrade if the route forbids it", func() {
		upgrade := []string{"Connection: Upgrade", "Upgrade: websocket"}
		Expect(ask(forwarding(&action{}, cart, two...), "http://h/cart", upgrade...).Code).To(Equal(explain.Forwarded))
		a := ask(forwarding(&action{
			UpgradeConfigs: []*routev3.RouteAction_UpgradeConfig{{UpgradeType: "websocket", Enabled: wrapperspb.Bool(false)}},
		}, cart, two...), "http://h/cart", upgrade...)
		Expect(a.Code).To(Equal(explain.NoUpgrade))
		Expect(a.Status).To(Equal(403))
	})

	It("may not upgrade with an empty Upgrade header", func() {
		a := ask(forwarding(&action{}, cart, two...), "http://h/cart", "Connection: Upgrade", "Upgrade:")
		Expect(a.Code).To(Equal(explain.NoUpgrade))
		Expect(a.Status).To(Equal(403))
	})
})

var _ = Describe("The gateway's own answer", func() {
	have := func() explain.State {
		return state(host("shop", []string{"shop.test"}, answering("r", prefixed("/a"))))
	}

	It("is a grpc-status for a gRPC client whose odd Host is a hop-by-hop header, and so missing", func() {
		a := ask(have(), "http://gateway/", "Host: {shop}.test", "Connection: host", "content-type: application/grpc")
		Expect(a.Code).To(Equal(explain.BadRequest))
		Expect(a.Status).To(Equal(200))
		Expect(a.GRPCStatus).To(Equal(13))
	})

	It("is a grpc-status for a gRPC client", func() {
		a := ask(have(), "http://other/", "content-type: application/grpc+proto")
		Expect(a.Code).To(Equal(explain.NoHost))
		Expect(a.Status).To(Equal(200))
		Expect(a.GRPCStatus).To(Equal(12))
	})

	It("refuses what Envoy rejects before it looks up a route", func() {
		for _, line := range []string{"x_a: 1", "x a: 1", "Host: a b"} {
			r := explain.Request{Method: "GET", Target: "/", Headers: []explain.Header{{Name: "Host", Value: "shop.test"}}}
			name, value, _ := strings.Cut(line, ": ")
			r.Headers = append(r.Headers, explain.Header{Name: name, Value: value})
			a, err := explain.Explain(have(), r)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Code).To(Equal(explain.BadRequest), line)
		}
		for _, r := range []explain.Request{
			{Method: "get", Target: "/", Headers: []explain.Header{{Name: "Host", Value: "shop.test"}}},
			{Method: "GET", Target: "/"},
		} {
			a, err := explain.Explain(have(), r)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Code).To(Equal(explain.BadRequest))
			Expect(a.Status).To(Equal(400))
		}
	})

	It("is impossible without a listener", func() {
		Expect(ask(have(), "http://shop.test/").Code).To(Equal(explain.NoRoute))
		a := ask(have(), "https://other.test/")
		Expect(a.Code).To(Equal(explain.NoListener))
		Expect(a.Message).To(HavePrefix("the proxy has no listener for https, so the connection is refused: none of its services has a certificate; no service of the proxy has host \"other.test\""))
	})
})
