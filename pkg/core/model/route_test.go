package model_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("A route is refused", func(prefix, config string, want ...string) {
	c, err := model.ParseRouteConfig(config)
	Expect(err).NotTo(HaveOccurred())
	got := []string{}
	for _, e := range (&model.Route{Service: "shop", Name: "root", Prefix: prefix, Config: c}).Validate() {
		got = append(got, e.Field+" "+e.Message)
	}
	Expect(got).To(Equal(want))
},
	Entry("nowhere with every match", "/", `{"match":"prefix"}`),
	Entry("nowhere with an exact match", "/", `{"match":"exact"}`),
	Entry("for each bad method", "/", `{"methods":["GET","G T",""]}`,
		`Route_config.methods[1] "G T" is not an HTTP token`, `Route_config.methods[2] "" is not an HTTP token`),
	Entry("for each bad query", "/", `{"query":[{"name":""},{"name":"q","invert":true}]}`,
		`Route_config.query[0].name "" is not an HTTP token`, "Route_config.query[1].invert is for headers only"),
	Entry("nowhere with the headers that HTTP/2 begins with", "/", `{"headers":[{"name":":authority"},{"name":":path"},{"name":":method"},{"name":":scheme","prefix":"http"}]}`),
	Entry("for one that only answers have", "/", `{"headers":[{"name":":status"}]}`, `Route_config.headers[0].name ":status" is not an HTTP token`),
	Entry("for conditions that hold always or never", "/", `{"headers":[{"name":"a","exact":""},{"name":"a","prefix":""},{"name":"a","regex":""}]}`,
		"Route_config.headers[0].exact must not be empty", "Route_config.headers[1].prefix must not be empty", "Route_config.headers[2].regex must not be empty"),
	Entry("for two conditions in one", "/", `{"headers":[{"name":"a","exact":"b","prefix":"b"}]}`, "Route_config.headers[0] takes only one of exact, prefix and regex"),
	Entry("nowhere without retries", "/", `{"retries":{"attempts":0}}`),
	Entry("nowhere with every reason to try again", "/", `{"retries":{"attempts":1,"on":["5xx","gateway-error","reset","reset-before-request","connect-failure",`+
		`"envoy-ratelimited","retriable-4xx","refused-stream","http3-post-connect-failure"]}}`),
	Entry("for each bad reason and method of retries", "/", `{"retries":{"attempts":1,"on":["5xx","a"],"methods":["GET","G T"]}}`,
		`Route_config.retries.on[1] "a" is not one of 5xx, gateway-error, reset, reset-before-request, connect-failure, envoy-ratelimited, retriable-4xx, refused-stream, http3-post-connect-failure`,
		`Route_config.retries.methods[1] "G T" is not an HTTP token`),
	Entry("for waits that Envoy cannot count", "/", `{"retries":{"attempts":1,"backoff":"999us","max_backoff":"60m0.001s"}}`,
		"Route_config.retries.backoff 999µs is not between 1ms and 1h", "Route_config.retries.max_backoff 1h0m0.001s is not between 1ms and 1h"),
	Entry("nowhere with the same wait each time", "/", `{"retries":{"attempts":1,"backoff":"1s","max_backoff":"1s"}}`),
	Entry("for waits that get shorter", "/", `{"retries":{"attempts":1,"backoff":"1s","max_backoff":"999ms"}}`, "Route_config.retries.max_backoff 999ms is below the backoff of 1s"),
	Entry("nowhere with hedged attempts of requests that can be repeated", "/",
		`{"methods":["GET","HEAD","OPTIONS","TRACE","PUT","DELETE"],"retries":{"attempts":1,"per_try":"1s","hedge":true}}`),
	Entry("for hedged attempts of which there is one", "/", `{"methods":["GET"],"retries":{"attempts":0,"per_try":"1s","hedge":true}}`,
		"Route_config.retries.hedge requires per_try and attempts: the next attempt begins when per_try is over"),
	Entry("for hedged attempts of requests that cannot be repeated", "/", `{"methods":["PATCH"],"retries":{"attempts":1,"per_try":"1s","hedge":true}}`,
		"Route_config.retries.hedge sends a request to two upstreams at the same time, whatever retries.methods has: set methods of the route, "+
			"and only methods that can be repeated (GET, HEAD, OPTIONS, TRACE, PUT, DELETE)"),
	Entry("for a rewrite to no path", "/", `{"rewrite":{"prefix":"b"}}`, `Route_config.rewrite.prefix "b" must start with "/"`),
	Entry("for a rewrite of a prefix that an expression does not have", "/a", `{"match":"regex","rewrite":{"prefix":"/b"}}`,
		"Route_config.rewrite.prefix cannot replace a prefix if match is regex; use regex and substitution"),
	Entry("for a rewrite of a prefix that a template does not have", "/{id}", `{"match":"template","rewrite":{"prefix":"/b"}}`,
		"Route_config.rewrite.prefix cannot replace a prefix if match is template; use template, such as /v2/{id}"),
	Entry("for a substitution of nothing", "/", `{"rewrite":{"substitution":"/b"}}`, "Route_config.rewrite.substitution requires regex"),
	Entry("for a bad host", "/", `{"rewrite":{"host":"a b"}}`, `Route_config.rewrite.host "a b" is not a host name, optionally with a port`),
)

var _ = Describe("A route", func() {
	It("has a name and tags as other objects have", func() {
		Expect(fields((&model.Route{Service: "shop", Name: "a b", Prefix: "/", Tags: model.Tags{"a\n"}}).Validate())).To(Equal([]string{"Route_Name", "tags"}))
	})

	It("keeps a stored text that is not its configuration, and says so", func() {
		var c model.RouteConfig
		Expect(c.Scan(`{"match":`)).To(Succeed())
		Expect(c).To(Equal(model.RouteConfig{Unreadable: `{"match":`}))
		Expect(c.Value()).To(Equal(`{"match":`))
		Expect((&model.Route{Service: "shop", Name: "root", Prefix: "/", Config: c}).Validate()).To(Equal([]model.FieldError{
			{Field: "Route_config", Message: "the stored text is not a route configuration: unexpected EOF; write it again"},
		}))
		Expect(c.Scan(`{"match":"exact"}`)).To(Succeed())
		Expect(c).To(Equal(model.RouteConfig{Match: "exact"}))
		Expect(c.Value()).To(Equal(`{"match":"exact"}`))
		Expect(c.Scan(7)).To(MatchError(HavePrefix("reading route configuration: ")))
	})

	DescribeTable("waits before it tries again", func(backoff, longest, wantFirst, wantMost time.Duration) {
		first, most := model.Retries{Backoff: model.Duration(backoff), MaxBackoff: model.Duration(longest)}.Waits()
		Expect([]time.Duration{first, most}).To(Equal([]time.Duration{wantFirst, wantMost}))
	},
		Entry("by default", time.Duration(0), time.Duration(0), 5*time.Millisecond, 100*time.Millisecond),
		Entry("20 times as long at most", time.Second, time.Duration(0), time.Second, 20*time.Second),
		Entry("as long as it says at most", time.Duration(0), time.Second, 5*time.Millisecond, time.Second),
	)
})
