package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("The names in a configuration", func() {
	const login = `"authorization_endpoint":"https://a.example/a","token_endpoint":"https://a.example/t"`

	var changed []model.Key
	change := func(_, name string, kind model.Kind) string {
		changed = append(changed, model.NewKey(kind, name))
		return "new." + name
	}
	BeforeEach(func() { changed = nil })

	DescribeTable("of a filter are all replaced, and nothing else is", func(typeName, config, want string, names ...model.Key) {
		f := &model.Filter{Name: "f", Type: typeName, Config: model.JSON(config)}
		Expect(f.Validate()).To(BeEmpty())
		Expect(f.Names()).To(HaveExactElements(names))
		out, err := f.MapNames(change)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(Equal(want))
		Expect(changed).To(ConsistOf(names))
	},
		Entry("a login", model.FilterOIDC, `{"client_id":"cookie","client_secret":{"secret":"client"},"redirect_uri":"/cb","cookie_secret":"cookie","upstream":"idp",`+login+`}`,
			`{"client_id":"cookie","client_secret":{"secret":"new.client"},"redirect_uri":"/cb","cookie_secret":"new.cookie","upstream":"new.idp",`+login+`}`,
			model.SecretKey("client"), model.SecretKey("cookie"), model.UpstreamKey("idp")),
		Entry("a login with fields in another letter case", model.FilterOIDC, `{"client_id":"x","client_secret":{"Secret":"client"},"redirect_uri":"/cb","COOKIE_\u017fecret":"cookie",`+login+`}`,
			`{"client_id":"x","client_secret":{"Secret":"new.client"},"redirect_uri":"/cb","COOKIE_ſecret":"new.cookie",`+login+`}`,
			model.SecretKey("client"), model.SecretKey("cookie")),
		Entry("passwords", model.FilterBasicAuth, `{"users":[{"name":"secret","password":{"secret":"a"}},{"password":{"secret":"b"},"name":"b"},{"name":"c","password":"sealed:v1:x"}]}`,
			`{"users":[{"name":"secret","password":{"secret":"new.a"}},{"password":{"secret":"new.b"},"name":"b"},{"name":"c","password":"sealed:v1:x"}]}`,
			model.SecretKey("a"), model.SecretKey("b")),
		Entry("headers", model.FilterHeaders, `{"request":{"set":{"cookie_secret":"x"}}}`, `{"request":{"set":{"cookie_secret":"x"}}}`),
		Entry("a rate limit", model.FilterRateLimit, `{"domain":"d","descriptors":[{"generic_key":"upstream"}]}`, `{"domain":"d","descriptors":[{"generic_key":"upstream"}]}`),
	)

	It("of logs are replaced too, although they may not exist", func() {
		f := &model.Filter{Name: "f", Type: model.FilterAccessLog, Config: `{"Log\u017f":["a","b"]}`}
		Expect(f.Validate()).To(BeEmpty())
		Expect(f.Names()).To(BeEmpty())
		Expect(f.MapNames(change)).To(Equal(model.JSON(`{"Logſ":["new.a","new.b"]}`)))
	})

	DescribeTable("of a global config are all replaced, and nothing else is", func(typeName, config, want string, names ...model.Key) {
		g := &model.GlobalConfig{Name: "g", Type: typeName, Config: model.JSON(config)}
		Expect(g.Validate()).To(BeEmpty())
		Expect(g.Names()).To(HaveExactElements(names))
		out, err := g.MapNames(change)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(Equal(want))
		Expect(changed).To(ConsistOf(names))
	},
		Entry("a login", model.GlobalConfigOAuth,
			`{"openid_connect":{"provider":{`+login+`},"client_id":"x","client_secret":"client","hmac_secret":"hmac","redirect_url":"/cb","redirect_path_matcher":"/cb","upstream":"idp"}}`,
			`{"openid_connect":{"provider":{`+login+`},"client_id":"x","client_secret":"new.client","hmac_secret":"new.hmac","redirect_url":"/cb","redirect_path_matcher":"/cb","upstream":"new.idp"}}`,
			model.SecretKey("client"), model.SecretKey("hmac"), model.UpstreamKey("idp")),
		Entry("limits", model.GlobalConfigRateLimit, `{"domain":"hmac_secret","descriptors":[{"key":"upstream"}]}`, `{"domain":"hmac_secret","descriptors":[{"key":"upstream"}]}`),
	)

	DescribeTable("do not include an inline client secret, which can be moved elsewhere", func(config, text, want string) {
		f := &model.Filter{Name: "f", Type: model.FilterOIDC, Config: model.JSON(config)}
		Expect(f.DetachClientSecret("elsewhere")).To(Equal(text))
		Expect(string(f.Config)).To(Equal(want))
	},
		Entry("inline text", `{"client_id":"x","client_secret":"s","scopes":[]}`, "s", `{"client_id":"x","client_secret":{"secret":"elsewhere"},"scopes":[]}`),
		Entry("a name", `{"client_secret":{"secret":"n"}}`, "", `{"client_secret":{"secret":"n"}}`),
		Entry("none", `{"client_id":"x"}`, "", `{"client_id":"x"}`),
	)
})
