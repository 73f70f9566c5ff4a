package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The descriptors of a rate limit", func(descriptors string, faults ...string) {
	Expect(faultsOf(model.FilterRateLimit, `{"descriptors":`+descriptors+`}`)).To(Equal(faults))
},
	Entry("of each kind", `[{"remote_address":"client","path":"path","method":"method","generic_key":"a","request_headers":"x-a","query_parameters":"q","claim":"sub"},
		{"masked_remote_address":{"v4_prefix_mask_len":24,"v6_prefix_mask_len":64}},{"request_headers":":path"},
		{"header_value_match":{"descriptor_value":"a","headers":[{"name":"x-a","exact_match":"b"}]}}]`),
	Entry("of the maximum number", `[`+strings.TrimSuffix(strings.Repeat(`{"path":""},`, 1000), ",")+`]`),
	Entry("of one too many", `[`+strings.TrimSuffix(strings.Repeat(`{"path":""},`, 1001), ",")+`]`, ".descriptors has 1001 descriptors; at most 1000 are allowed"),
	Entry("of none", `[]`, `.descriptors must be a list of at least one descriptor, such as [{"remote_address":"client"}]`),
	Entry("of another type", `"path"`, `.descriptors must be a list of at least one descriptor, such as [{"remote_address":"client"}]`),
	Entry("that are no objects", `[7,{},{"path":7}]`,
		`.descriptors[0] must be an object that names what to count, such as {"remote_address":"client"}`,
		`.descriptors[1] must be an object that names what to count, such as {"remote_address":"client"}`,
		`.descriptors[2].path must be a string or an object`),
	Entry("of unknown kinds", `[{"path":"","paths":""}]`, `.descriptors[0] "paths" is not one of api_client, claim, consumer, generic_key, header_value_match, masked_remote_address, method, path, query_parameters, remote_address, request_headers`),
	Entry("with a list in a list", `[{"descriptors":[{"descriptors":[{"path":""}]}]}]`,
		`.descriptors[0].descriptors[0] "descriptors" is not one of api_client, claim, consumer, generic_key, header_value_match, masked_remote_address, method, path, query_parameters, remote_address, request_headers`),
	Entry("with a list beside something", `[{"descriptors":[{"path":""}],"path":""}]`,
		`.descriptors[0] "descriptors" is not one of api_client, claim, consumer, generic_key, header_value_match, masked_remote_address, method, path, query_parameters, remote_address, request_headers`),
	Entry("with unknown fields", `[{"remote_address":{"a":1,"b":2}}]`, ".descriptors[0].remote_address.a is not a field of remote_address", ".descriptors[0].remote_address.b is not a field of remote_address"),
	Entry("with a field of another type", `[{"masked_remote_address":{"v4_prefix_mask_len":"a"}}]`,
		".descriptors[0].masked_remote_address cannot unmarshal string into Go struct field RateLimitEntry.v4_prefix_mask_len of type int"),
	Entry("without what they need", `[{"generic_key":{}},{"request_headers":{}},{"query_parameters":{}},{"header_value_match":{}},{"claim":""}]`,
		".descriptors[0].generic_key.descriptor_value is required",
		".descriptors[1].request_headers.header_name is required", ".descriptors[1].request_headers.descriptor_key is required",
		".descriptors[2].query_parameters.query_parameter_name is required", ".descriptors[2].query_parameters.descriptor_key is required",
		".descriptors[3].header_value_match.descriptor_value is required", ".descriptors[3].header_value_match.headers is required: at least one condition",
		`.descriptors[4].claim.name "" is not the name of a claim, such as email or realm_access.roles`),
	Entry("with a header that is no token", `[{"request_headers":"x a"}]`, `.descriptors[0].request_headers.header_name "x a" is not an HTTP token`),
	Entry("with conditions that are wrong", `[{"header_value_match":{"descriptor_value":"a","headers":[{"name":"x-a"},{"name":"x b"}]}}]`,
		`.descriptors[0].header_value_match.headers[1].name "x b" is not an HTTP token`),
	Entry("with masks that are too long", `[{"masked_remote_address":{"v4_prefix_mask_len":33,"v6_prefix_mask_len":129}}]`,
		".descriptors[0].masked_remote_address.v4_prefix_mask_len 33 is not between 0 and 32", ".descriptors[0].masked_remote_address.v6_prefix_mask_len 129 is not between 0 and 128"),
)

var _ = DescribeTable("A rate limit", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterRateLimit, config)).To(Equal(faults))
},
	Entry("of a domain without a name", `{"domain":"","descriptors":[{"path":""}]}`, ".domain must not be empty; omit it instead"),
	Entry("of the domain of short forms", `{"domain":"stated-by-filters","descriptors":[{"path":""}]}`, `.domain "stated-by-filters" is the domain of filters that state their own limit; choose another name`),
	Entry("by something else", `{"per":"host","limit":"5/minute"}`, `.per "host" must be client, api_client, consumer, header:NAME, claim:NAME or all`),
	Entry("by a header that is no token", `{"per":"header:a b","limit":"5/minute"}`, `.per "a b" is not an HTTP token`),
	Entry("by a claim that is none", `{"per":"claim:a..b","limit":"5/minute"}`, `.per "a..b" is not the name of a claim, such as email or realm_access.roles`),
	Entry("without a number", `{"per":"all","limit":"a/minute"}`, `.limit "a/minute" must be a number, a slash and a unit, such as 5/minute; units are second, minute, hour, day, week, month, year`),
	Entry("without a unit", `{"per":"all","limit":"5"}`, `.limit "5" must be a number, a slash and a unit, such as 5/minute; units are second, minute, hour, day, week, month, year`),
	Entry("of both forms", `{"per":"all","domain":"a"}`, " has domain together with per and limit; use either the short form or domain and descriptors"),
	Entry("of both forms, in another way", `{"limit":"5/minute","descriptors":[]}`, " has descriptors together with per and limit; use either the short form or domain and descriptors"),
	Entry("of both forms, in a third way", `{"shadow":true,"domain":"a"}`, " has domain together with per and limit; use either the short form or domain and descriptors"),
)

var _ = DescribeTable("A rate limit in the short form", func(per string, rules []model.RateLimitRule, descriptors ...model.RateLimitDescriptor) {
	f, _ := (&model.Filter{Name: "f", Type: model.FilterRateLimit, Config: model.JSON(`{"per":"` + per + `","limit":"5/minute","shadow":true}`)}).Parse().Spec.(*model.RateLimitFilter)
	rule := &model.RateLimitRule{Key: "filter", Value: "f", ShadowMode: true, Descriptors: rules}
	if rules == nil {
		rule.RateLimit = fiveAMinute
	}
	Expect(f.Domain).To(Equal("stated-by-filters"))
	Expect(f.Stated).To(Equal(rule))
	Expect(f.Descriptors).To(Equal(descriptors))
},
	Entry("counts all", "all", nil, model.RateLimitDescriptor{named}),
	Entry("counts by client", "client", []model.RateLimitRule{limited("remote_address", "")}, model.RateLimitDescriptor{named, {Kind: "remote_address"}}),
	Entry("counts by API client", "api_client", []model.RateLimitRule{limited("api_client", "")}, model.RateLimitDescriptor{named, {Kind: "api_client"}}),
	Entry("counts by claim", "claim:sub", []model.RateLimitRule{limited("claim", "")}, model.RateLimitDescriptor{named, {Kind: "claim", Claim: "sub"}}),
	Entry("counts by header, and by client without it", "header:x-a",
		[]model.RateLimitRule{limited("header", ""), {Key: "without", Value: "header", ShadowMode: true, Descriptors: []model.RateLimitRule{limited("remote_address", "")}}},
		model.RateLimitDescriptor{named, {Kind: "request_headers", HeaderName: "x-a", Key: "header"}},
		model.RateLimitDescriptor{named, {Kind: "header_value_match", Key: "without", Value: "header", Headers: []model.ValueMatch{{Name: "x-a"}}, NoMatch: true}, {Kind: "remote_address"}}),
)

var (
	fiveAMinute = &model.RateLimit{Unit: "minute", RequestsPerUnit: 5}
	named       = model.RateLimitEntry{Kind: "generic_key", Key: "filter", Value: "f"}
)

func limited(key, value string) model.RateLimitRule {
	return model.RateLimitRule{Key: key, Value: value, ShadowMode: true, RateLimit: fiveAMinute}
}

var _ = DescribeTable("A descriptor in short", func(descriptors string, want ...model.RateLimitDescriptor) {
	f, _ := (&model.Filter{Name: "f", Type: model.FilterRateLimit, Config: model.JSON(`{"descriptors":` + descriptors + `}`)}).Parse().Spec.(*model.RateLimitFilter)
	Expect(f.Descriptors).To(Equal(want))
},
	Entry("is an object", `{"generic_key":"a"}`, model.RateLimitDescriptor{{Kind: "generic_key", Value: "a"}}),
	Entry("is in an object with a list", `{"descriptors":[{"path":"the path"},{"claim":"sub"}]}`, model.RateLimitDescriptor{{Kind: "path"}}, model.RateLimitDescriptor{{Kind: "claim", Claim: "sub"}}),
	Entry("follows a list", `[{"descriptors":[{"path":""}]},{"method":""}]`, model.RateLimitDescriptor{{Kind: "path"}}, model.RateLimitDescriptor{{Kind: "method"}}),
	Entry("is text, in the order in which it is written", `[{"request_headers":"x-a","query_parameters":"q","generic_key":"a"}]`,
		model.RateLimitDescriptor{{Kind: "request_headers", HeaderName: "x-a", Key: "x-a"}, {Kind: "query_parameters", ParameterName: "q", Key: "q"}, {Kind: "generic_key", Value: "a"}}),
)
