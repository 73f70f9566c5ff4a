package compile_test

import (
	"net/netip"
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
		conditions := compile.NotFirst(t)
		Expect(conditions).To(ConsistOf(model.Condition{
			Key: model.GlobalConfigKey("page-b"), Code: model.Quarantined,
			Message: "proxy gw has the globalconfig_refusals of globalconfig page-a, and not this one",
		}))
	})

	It("is the built-in one if a stored one would be refused now", func() {
		t := tree(`{"html":"` + strings.Repeat("{title}", 5) + `"}`)
		Expect(compile.Listener(t, compile.Settings{}, ir.Needs{}).RefusalPage).To(BeEmpty())
		conditions := compile.NotFirst(t)
		Expect(conditions).To(ConsistOf(HaveField("Message", HavePrefix("its configuration cannot be read"))))
	})
})

var _ = Describe("The PROXY protocol", func() {
	listener := func(configs ...string) ir.Listener {
		t := &model.ProxyTree{Proxy: &model.Proxy{Name: "gw"}}
		for i, config := range configs {
			g := &model.GlobalConfig{Name: "g-" + string(rune('a'+i)), Type: model.GlobalConfigProxyProtocol, Config: model.JSON(config)}
			t.GlobalConfigs = append(t.GlobalConfigs, g.Parse())
		}
		return compile.Listener(t, compile.Settings{}, ir.Needs{})
	}

	It("is read from the balancers of the first global config, and from nobody if a stored one would be refused now", func() {
		Expect(listener().ProxyProtocol).To(BeNil())
		Expect(listener(`{"from":["192.0.2.1"]}`, `{"from":["0.0.0.0/0"]}`).ProxyProtocol).To(Equal(&ir.ProxyProtocol{From: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}}))
		Expect(listener(`{"from":["example.test"]}`, `{"from":["0.0.0.0/0"]}`).ProxyProtocol).To(Equal(&ir.ProxyProtocol{}))
	})
})
