package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("Bounds of connections have bounds themselves", func(config string, fields ...string) {
	g := &model.GlobalConfig{Name: "g", Type: model.GlobalConfigConnections, Config: model.JSON(config)}
	have := make([]string, 0)
	for _, e := range g.Validate() {
		have = append(have, e.Field)
	}
	Expect(have).To(Equal(fields))
},
	Entry("none", `{}`),
	Entry("the smallest", `{"max_connections":1,"max_requests":1,"headers_kib":1,"headers":1,"max_streams":1,"new_per_client":"1/year",
		"max_age":"1s","idle_timeout":"1s","drain_timeout":"1s","keepalive":"1s","headers_timeout":"1s","request_timeout":"1s",
		"stream_idle_timeout":"1s","slow_reader_timeout":"1s"}`),
	Entry("the largest", `{"max_connections":1000000,"max_requests":1000000,"headers_kib":256,"headers":1000,"max_streams":1000,
		"max_age":"24h","idle_timeout":"24h","drain_timeout":"1h","keepalive":"2h","headers_timeout":"1h","request_timeout":"24h",
		"stream_idle_timeout":"24h","slow_reader_timeout":"1h"}`),
	Entry("too small", `{"max_connections":-1,"max_requests":-1,"headers_kib":-1,"headers":-1,"max_streams":-1,"new_per_client":"x",
		"max_age":"1ms","idle_timeout":"-1s","drain_timeout":"999ms","keepalive":"1ns","headers_timeout":"1us","request_timeout":"0.5s",
		"stream_idle_timeout":"-1h","slow_reader_timeout":"10ms"}`,
		"config.new_per_client", "config.max_connections", "config.max_requests", "config.headers_kib", "config.headers",
		"config.max_streams", "config.max_age", "config.idle_timeout", "config.drain_timeout", "config.keepalive",
		"config.headers_timeout", "config.request_timeout", "config.stream_idle_timeout", "config.slow_reader_timeout"),
	Entry("too large", `{"max_connections":1000001,"max_requests":1000001,"headers_kib":257,"headers":1001,"max_streams":1001,
		"new_per_client":"99999999999/second","max_age":"25h","idle_timeout":"24h1s","drain_timeout":"2h","keepalive":"3h",
		"headers_timeout":"61m","request_timeout":"48h","stream_idle_timeout":"25h","slow_reader_timeout":"90m"}`,
		"config.new_per_client", "config.max_connections", "config.max_requests", "config.headers_kib", "config.headers",
		"config.max_streams", "config.max_age", "config.idle_timeout", "config.drain_timeout", "config.keepalive",
		"config.headers_timeout", "config.request_timeout", "config.stream_idle_timeout", "config.slow_reader_timeout"),
	Entry("part of a second", `{"keepalive":"1500ms"}`, "config.keepalive"),
	Entry("another field", `{"idle":"1m"}`, "config"),
)
