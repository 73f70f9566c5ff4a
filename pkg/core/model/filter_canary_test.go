package model_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The upstreams and the header of a canary", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterCanary, config)).To(Equal(faults))
},
	Entry("may be sixteen", upstreams(16)),
	Entry("may not be more", upstreams(17), ".upstreams "+`has 17 upstreams; give 1 to 16, such as [{"name":"blue","weight":95},{"name":"green","weight":5}]`),
	Entry("may have changes of headers", `{"upstreams":[{"name":"a","weight":1,"request":{"set":{"x-a":"1"}},"response":{"remove":["x-b"]}}]}`),
	Entry("may not change what the gateway sets", `{"upstreams":[{"name":"a","weight":1,"request":{"set":{"x-forwarded-for":"a"}},"response":{"remove":["server"]}}]}`,
		`.upstreams[0].request.set.x-forwarded-for "x-forwarded-for" is set by the gateway and cannot be changed`, `.upstreams[0].response "server" is set by the gateway and cannot be changed`),
	Entry("may not have a long name", `{"upstreams":[{"name":"a","weight":1}],"header":{"name":"`+strings.Repeat("a", 256)+`","value":"a"}}`, ".header.name has more than 255 characters"),
	Entry("may not be a header of Envoy", `{"upstreams":[{"name":"a","weight":1}],"header":{"name":"X-Envoy-Canary","value":"a"}}`, `.header.name "X-Envoy-Canary" is not a header that can select an upstream`),
)

// upstreams returns a canary of n upstreams.
func upstreams(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name":"u%d","weight":1}`, i)
	}
	return `{"upstreams":[` + strings.Join(list, ",") + `]}`
}
