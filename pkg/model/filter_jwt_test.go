package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

const publicKey = `{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`

var _ = Describe("The configuration for tokens", func() {
	filter := func(config string) *model.Filter {
		return &model.Filter{Name: "api", Type: "http_filter_jwt", Config: model.JSON(config)}
	}

	DescribeTable("is refused", func(config, field, message string) {
		Expect(filter(config).Validate()).To(Equal([]model.FieldError{{Field: "Filter_config" + field, Message: message}}))
	},
		Entry("with a symmetric key besides others", `{"issuer":"us","jwks":{"keys":[`+publicKey+`,{"kty":"oct","k":"YQ"}]}}`, ".jwks",
			"has a symmetric key (oct): whoever can verify with it can sign; use public keys"),
		Entry("with a symmetric key under another name", `{"issuer":"us","jwks":{"keys":[`+publicKey+`,{"kty":"RSA","k":"YQ"}]}}`, ".jwks",
			"has a symmetric key (oct): whoever can verify with it can sign; use public keys"),
		Entry("with a private key", `{"issuer":"us","jwks":{"keys":[{"kty":"EC","d":"YQ"}]}}`, ".jwks",
			`publishes the private half of key 1 ("d"): its signatures prove nothing; replace the key at the provider`),
		Entry("with text for keys", `{"issuer":"us","jwks":"{}"}`, ".jwks", "is not a JSON object"),
		Entry("with null for keys", `{"issuer":"us","jwks":null}`, ".jwks", `has no list "keys": a key set is {"keys": [...]}`),
		Entry("with no place for the token", `{"issuer":"https://us.test","from":{}}`, ".from", "takes exactly one of header, cookie and query, so that nobody has to say which of two tokens counts"),
		Entry("with two places for the token", `{"issuer":"https://us.test","from":{"cookie":"a","query":"b"}}`, ".from", "takes exactly one of header, cookie and query, so that nobody has to say which of two tokens counts"),
		Entry("with a line feed before the token", `{"issuer":"https://us.test","from":{"header":"a","prefix":"b\n"}}`, ".from.prefix", `"b\n" cannot precede a token in a header; an example is "Bearer "`),
		Entry("with an issuer that has a query", `{"issuer":"https://us.test/?a"}`, ".issuer",
			`"https://us.test/?a" must have no query: it is the provider's own name, and the address of its discovery document`),
	)

	It("is accepted with an issuer that is not a URL if the keys are configured", func() {
		Expect(filter(`{"issuer":"us","jwks":{"keys":[` + publicKey + `]}}`).Validate()).To(BeEmpty())
		Expect(filter(`{"issuer":"us","jwks_uri":"https://us.test/keys"}`).Validate()).To(BeEmpty())
	})

	DescribeTable("is refused if anybody could replace its keys on the way", func(uri, more string, refused bool) {
		config := `{"issuer":"us","jwks_uri":"` + uri + `"` + more + `}`
		either := &model.Filter{Name: "f", Type: "http_filter_anyof", Config: model.JSON(`{"apikey":{"keys":"a"},"jwt":` + config + `}`)}
		var want, inEither []model.FieldError
		if refused {
			message := `"` + uri + `" is plain HTTP to a public host: anyone on the network path can replace the provider's keys. ` +
				"Use https, or name the upstream through which the keys are fetched"
			want, inEither = []model.FieldError{{Field: "Filter_config.jwks_uri", Message: message}}, []model.FieldError{{Field: "Filter_config.jwt.jwks_uri", Message: message}}
		}
		Expect(filter(config).Validate()).To(Equal(want))
		Expect(either.Validate()).To(Equal(inEither))
		Expect(filter(config).Parse().Fault).NotTo(HaveOccurred(), "what is stored stays in force")
	},
		Entry("at a public name", "http://us.test/keys", "", true), Entry("at a public address", "http://192.0.2.1/keys", "", true),
		Entry("at a public IPv6 address", "http://[2001:db8::1]:80/keys", "", true), Entry("but not over TLS", "https://us.test/keys", "", false),
		Entry("but not through an upstream", "http://us.test/keys", `,"upstream":"idp"`, false), Entry("but not at a private address", "http://10.1.2.3/keys", "", false),
		Entry("but not on this machine", "http://127.0.0.1:8080/keys", "", false), Entry("but not at localhost", "http://localhost/keys", "", false),
		Entry("but not at a name of one label", "http://idp/keys", "", false), Entry("but not in a cluster", "http://idp.login.svc/keys", "", false),
		Entry("but not in a cluster, in full", "http://idp.login.svc.cluster.local/keys", "", false), Entry("but not at an internal name", "http://idp.corp.internal/keys", "", false),
	)

	It("warns if more tokens are accepted than expected, or if others see tokens and keys", func() {
		advice := func(config string) []string { return filter(config).Parse().Spec.(*model.JWTFilter).Advice() }
		Expect(advice(`{"issuer":"https://us.test","audiences":["a"]}`)).To(BeEmpty())
		Expect(advice(`{"issuer":"http://us.test","from":{"query":"a"}}`)).To(Equal([]string{
			"has no audiences: it accepts every token of the issuer, also those issued for other programs",
			"has issuer http://us.test, which is plain HTTP: anyone on the network path can replace the provider's keys",
			"accepts tokens in the query: whoever sees a URL has its token, and URLs appear in logs and browser histories",
		}))
		Expect(advice(`{"issuer":"us","audiences":["a"],"jwks_uri":"http://us.test/keys"}`)).To(Equal([]string{
			"has jwks_uri http://us.test/keys, which is plain HTTP: anyone on the network path can replace the provider's keys",
		}))
	})

	It("fetches its keys through its upstream, and nothing that is configured", func() {
		source := func(config string) model.ProviderSource { return model.SourceOf(filter(config).Parse().Spec) }
		Expect(source(`{"issuer":"https://us.test","upstream":"idp"}`)).To(Equal(model.ProviderSource{Issuer: "https://us.test", Discover: true, Upstream: "idp", UpstreamFor: "https://us.test"}))
		Expect(source(`{"issuer":"us","jwks_uri":"https://us.test/keys"}`)).To(Equal(model.ProviderSource{JWKSURI: "https://us.test/keys"}))
		Expect(source(`{"issuer":"us","jwks":{"keys":[` + publicKey + `]}}`)).To(Equal(model.ProviderSource{}))
		Expect(filter(`{"issuer":"https://us.test","upstream":"idp"}`).Names()).To(Equal([]model.Key{model.UpstreamKey("idp")}))
	})
})
