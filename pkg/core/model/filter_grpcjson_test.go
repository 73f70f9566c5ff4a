package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("Calls with ignored parameters", func(n int, faults ...string) {
	Expect(faultsOf(model.FilterGRPCJSON, calls(1, `["a.B"],"ignored_query_parameters":`+names("p", n)))).To(Equal(faults))
},
	Entry("have at most 100", 100),
	Entry("do not have more", 101, ".ignored_query_parameters has 101 entries; at most 100 are allowed"),
)

var _ = DescribeTable("Calls with large messages cause a warning", func(more string, large bool) {
	want := []string{}
	if large {
		want = []string{"allows messages of more than 10 MiB, and an Envoy holds each whole message in memory: move larger files to separate storage"}
	}
	Expect(adviceOf(model.FilterGRPCJSON, calls(1, `["a.B"],`+more))).To(Equal(want))
},
	Entry(nil, `"max_request_body_size":10485760,"max_response_body_size":10485760`, false),
	Entry(nil, `"max_request_body_size":10485761`, true),
	Entry(nil, `"max_response_body_size":10485761`, true),
)
