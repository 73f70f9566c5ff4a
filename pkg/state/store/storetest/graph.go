package storetest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

func graphSpecs(h *harness) {
	It("connects the same objects as the configuration in memory", func(ctx SpecContext) {
		login := &model.Filter{Name: "login", Type: model.FilterOIDC, Config: `{"cookie_secret":"cookies","upstream":"idp"}`}
		oauth := &model.GlobalConfig{Name: "oauth", Type: model.GlobalConfigOAuth, Config: `{"openid_connect":{"hmac_secret":"cookies"}}`}
		inner := &model.GlobalConfig{Name: "inner", Type: model.GlobalConfigOAuth, Config: `{"openid_connect":{"hmac_secret":"ca"}}`}
		edge, tls := proxy("edge"), upstream("tls")
		tls.Protocol, tls.ValidationCACertificate = "tls", "ca"
		h.create(ctx, shop()...)
		h.create(ctx, &model.Secret{Name: "cookies"}, &model.Secret{Name: "ca"}, upstream("idp"), tls, login, oauth, inner, edge,
			service("blog", "blog.example.com"), route("blog", "root"), uses("blog", "root", "tls"),
			&model.ServiceFilter{Service: "shop", Filter: "login"}, &model.ServiceSecret{Service: "blog", Secret: "ca"},
			&model.ProxyGlobalConfig{Proxy: "edge", GlobalConfig: "inner"}, attached("edge", "blog"))
		change, err := h.store.Since(ctx, model.Mark{})
		Expect(err).NotTo(HaveOccurred())
		config := model.NewConfig()
		config.Apply(change)
		Expect(h.store.Read(ctx, func(r store.Reader) error {
			graph := store.NewGraph(r)
			for _, e := range change.Entries {
				stored, err := model.Reach(graph, []model.Key{e.Key})
				Expect(err).NotTo(HaveOccurred())
				inMemory, _ := model.Reach(config, []model.Key{e.Key})
				Expect(stored).To(Equal(inMemory), e.Key.Path())
			}
			reached, err := model.Reach(graph, []model.Key{model.SecretKey("cookies")})
			Expect(err).NotTo(HaveOccurred())
			Expect(reached.Services).To(And(HaveLen(1), HaveKey("shop")))
			Expect(reached.Proxies).To(And(HaveLen(2), HaveKey("gw"), HaveKey("edge")))
			served, err := reached.ServedBy(graph)
			Expect(served).To(Equal(map[string][]string{"shop": {"gw"}}))
			return err
		})).To(Succeed())
	})
}
