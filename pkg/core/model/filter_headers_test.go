package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("A change of headers", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterHeaders, config)).To(Equal(faults))
},
	Entry("changes the maximum number of headers", `{"request":{"set":`+headersOf(50)+`}}`),
	Entry("changes one header too many", `{"request":{"set":`+headersOf(50)+`,"remove":["b"]}}`,
		".request changes 51 headers; a filter may change at most 50, because receivers refuse messages with too many"),
	Entry("changes nothing", `{"request":{}}`, ` changes no header; set request or response, such as {"request":{"set":{"x-team":"shop"}}}`),
	Entry("has one fault, not two", `{"request":{"set":{"te":"a"}}}`, `.request.set.te "te" belongs to the connection and cannot be changed`),
	Entry("has faults in the second name of each part", `{"request":{"set":{"a":"b","te":"c"},"add":{"a":"b","Upgrade":"c"},"remove":["a","trailer"]}}`,
		`.request.set.te "te" belongs to the connection and cannot be changed`,
		`.request.add.Upgrade "Upgrade" belongs to the connection and cannot be changed`,
		`.request.remove "trailer" belongs to the connection and cannot be changed`),
	Entry("removes a header of the gateway", `{"response":{"remove":["a","Server"]}}`, `.response "server" is set by the gateway and cannot be changed`),
	Entry("sets a header of the gateway", `{"response":{"set":{"server":"a"}}}`, `.response "server" is set by the gateway and cannot be changed`),
	Entry("sets such a header of requests", `{"request":{"set":{"server":"a"}}}`),
	Entry("sets a header of Envoy", `{"request":{"set":{"X-Envoy-Retry-On":"5xx"}}}`, `.request.set.X-Envoy-Retry-On "X-Envoy-Retry-On" is set by the gateway and cannot be changed`),
	Entry("sets where a request came from", `{"request":{"set":{"Forwarded":"for=192.0.2.1"}}}`, `.request.set.Forwarded "Forwarded" is set by the gateway and cannot be changed`),
	Entry("sets whom a request came from", `{"request":{"set":{"X-Real-IP":"192.0.2.1"}}}`, `.request.set.X-Real-IP "X-Real-IP" is set by the gateway and cannot be changed`),
	Entry("sets a header with the longest name", `{"request":{"set":{"`+strings.Repeat("a", 255)+`":"b"}}}`),
	Entry("sets a header with a longer name", `{"request":{"remove":["`+strings.Repeat("a", 256)+`"]}}`, ".request.remove has more than 255 characters"),
	Entry("sets the longest value", `{"request":{"set":{"a":"`+strings.Repeat("b", 4096)+`"}}}`),
	Entry("sets a longer value", `{"request":{"set":{"a":"`+strings.Repeat("b", 4097)+`"}}}`, ".request.set.a has more than 4096 bytes"),
	Entry("sets a value with a tab", `{"request":{"set":{"a":"b\tc"}}}`),
	Entry("sets a value that ends in a space", `{"request":{"set":{"a":"b "}}}`, ".request.set.a ends in a space or contains a control character, which a header value cannot"),
	Entry("sets a value that begins with a tab", `{"request":{"set":{"a":"\tb"}}}`, ".request.set.a ends in a space or contains a control character, which a header value cannot"),
	Entry("sets a value with another line", `{"request":{"set":{"a":"b\r\nc: d"}}}`, ".request.set.a ends in a space or contains a control character, which a header value cannot"),
	Entry("adds a value with DEL", `{"request":{"add":{"a":"b\u007f"}}}`, ".request.add.a ends in a space or contains a control character, which a header value cannot"),
)

// headersOf is an object of n headers with a value.
func headersOf(n int) string {
	list := strings.Split(strings.Trim(names("a", n), "[]"), ",")
	return "{" + strings.Join(list, `:"v",`) + `:"v"}`
}
