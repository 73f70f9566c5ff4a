package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("A limit of bodies warns", func(config string, advice ...string) {
	Expect(adviceOf(model.FilterBodyLimit, config)).To(Equal(advice))
},
	Entry("not about one frame of HTTP/2", `{"bytes":16384}`),
	Entry("about less than one frame", `{"bytes":16383}`, "limits bodies to 16383 bytes only over HTTP/1.1 or with a Content-Length: over HTTP/2, Envoy does not count a body without one that fits in one frame, of up to 16384 bytes"),
	Entry("not about 10 MiB", `{"bytes":10485760}`),
	Entry("about more than 10 MiB", `{"bytes":10485761}`, "allows bodies of 10485761 bytes, and an Envoy holds each whole body in memory until it is complete: send larger uploads to separate storage"),
	Entry("about gzip", `{"bytes":16384,"decompress":true}`, "decompresses gzip: of a body that is damaged or has several gzip members, the upstream receives only what could be decompressed, without an error"),
)
