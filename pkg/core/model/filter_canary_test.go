package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The upstreams and the header of a canary", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterCanary, config)).To(Equal(faults))
},
	Entry("may be ten", `{"upstreams":[{"name":"a","weight":1},{"name":"b"},{"name":"c"},{"name":"d"},{"name":"e"},{"name":"f"},{"name":"g"},{"name":"h"},{"name":"i"},{"name":"j"}]}`),
	Entry("may not have a long name", `{"upstreams":[{"name":"a","weight":1}],"header":{"name":"`+strings.Repeat("a", 256)+`","value":"a"}}`, ".header.name has more than 255 characters"),
	Entry("may not be a header of Envoy", `{"upstreams":[{"name":"a","weight":1}],"header":{"name":"X-Envoy-Canary","value":"a"}}`, `.header.name "X-Envoy-Canary" is not a header that can select an upstream`),
)
