package compile_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("A stored global config that would be refused now, or whose secret is unusable, has no effect",
	func(kind, config, reason string) {
		g := (&model.GlobalConfig{Name: "g", Type: kind, Config: model.JSON(config)}).Parse()
		up := model.NewUpstream()
		up.Name, up.IP, up.Port = "c", "192.0.2.1", 4318
		t := &model.ProxyTree{
			Proxy: &model.Proxy{Name: "gw"}, GlobalConfigs: []*model.ParsedGlobalConfig{g},
			Named: map[model.Key]model.Object{up.Key(): up, model.SecretKey("k"): &model.Secret{Name: "k", Value: "sealed:v1:x"}},
		}
		settings := compile.Settings{AccessLog: true, Open: func(string, string) (string, error) { return "key\r\nx-admin: 1", nil }}
		l := compile.Listener(t, settings, ir.Needs{})
		Expect(l).To(And(HaveField("AccessLog", true), HaveField("AccessLogs", BeEmpty()), HaveField("Tracing", BeNil()), HaveField("Lean", false)))
		var messages []string
		for _, c := range compile.TelemetryOf(t, settings).Conditions {
			messages = append(messages, c.Message)
		}
		if reason == "" {
			Expect(messages).To(BeEmpty())
			return
		}
		Expect(messages).To(ConsistOf(ContainSubstring(reason)))
	},
	Entry("for traces", model.GlobalConfigTracing, `{"upstream":"c","tags":[{"name":"a","header":"cookie"}]}`, "requests are not traced: its configuration cannot be read"),
	Entry("for a key of two lines", model.GlobalConfigTracing, `{"upstream":"c","credential":{"secret":"k"}}`, "secret k is not the value of a header"),
	Entry("for logs", model.GlobalConfigAccessLog, `{"fields":[{"name":"a","header":"cookie"}]}`, "this log is not written: its configuration cannot be read"),
	Entry("for the whole proxy", model.GlobalConfigGlobals, `{"lean":true,"fat":true}`, ""),
)
