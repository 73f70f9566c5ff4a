package compile_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("The page for refused browsers", func() {
	tree := func(configs ...string) *model.ProxyTree {
		t := &model.ProxyTree{Proxy: &model.Proxy{Name: "gw"}}
		for i, config := range configs {
			g := &model.GlobalConfig{Name: "page-" + string(rune('a'+i)), Type: model.GlobalConfigRefusals, Config: model.JSON(config)}
			t.GlobalConfigs = append(t.GlobalConfigs, g.Parse())
		}
		return t
	}

	It("is that of the first global config, and the others say so", func() {
		t := tree(`{"html":"a"}`, `{"html":"b"}`)
		Expect(compile.Listener(t, compile.Settings{}, ir.Needs{}).RefusalPage).To(Equal("a"))
		_, conditions := compile.RefusalPage(t)
		Expect(conditions).To(ConsistOf(model.Condition{
			Key: model.GlobalConfigKey("page-b"), Code: model.Quarantined,
			Message: "proxy gw has the page of globalconfig page-a, and not this one",
		}))
	})

	It("is the built-in one if a stored one would be refused now", func() {
		t := tree(`{"html":"` + strings.Repeat("{title}", 5) + `"}`)
		Expect(compile.Listener(t, compile.Settings{}, ir.Needs{}).RefusalPage).To(BeEmpty())
		_, conditions := compile.RefusalPage(t)
		Expect(conditions).To(ConsistOf(HaveField("Message", HavePrefix("the page is not used: its configuration cannot be read"))))
	})
})
