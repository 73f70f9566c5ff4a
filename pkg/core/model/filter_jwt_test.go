package model_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
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
		Entry("with no place for the token", `{"issuer":"https://us.test","from":{}}`, ".from", "takes exactly one of header, cookie and query, because it would be unclear which of two tokens counts"),
		Entry("with two places for the token", `{"issuer":"https://us.test","from":{"cookie":"a","query":"b"}}`, ".from", "takes exactly one of header, cookie and query, because it would be unclear which of two tokens counts"),
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
		Entry("but not at a link-local address", "http://169.254.1.1/keys", "", false),
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
		Expect(advice(`{"issuer":"us","audiences":["a"],"jwks_uri":"http://localhost:8080/keys","from":{"header":"x-token"}}`)).To(BeEmpty())
	})

	It("fetches its keys through its upstream, and nothing that is configured", func() {
		source := func(config string) model.ProviderSource { return model.SourceOf(filter(config).Parse().Spec) }
		Expect(source(`{"issuer":"https://us.test","upstream":"idp"}`)).To(Equal(model.ProviderSource{Issuer: "https://us.test", Discover: true, Upstream: "idp", UpstreamFor: "https://us.test"}))
		Expect(source(`{"issuer":"us","jwks_uri":"https://us.test/keys"}`)).To(Equal(model.ProviderSource{JWKSURI: "https://us.test/keys"}))
		Expect(source(`{"issuer":"us","jwks":{"keys":[` + publicKey + `]}}`)).To(Equal(model.ProviderSource{}))
		Expect(filter(`{"issuer":"https://us.test","upstream":"idp"}`).Names()).To(Equal([]model.Key{model.UpstreamKey("idp")}))
	})
})

var _ = DescribeTable("The parts of a configuration for tokens", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterJWT, `{"issuer":"https://us.test",`+config+`}`)).To(Equal(faults))
},
	Entry("are right at their bounds", `"audiences":`+names("a", 20)+`,"require":`+claimsOf(10)+`,"claim_headers":`+claimHeadersOf(20)),
	Entry("have an audience too many", `"audiences":`+names("a", 21), ".audiences has 21 elements; at most 20 are allowed"),
	Entry("have a second audience that is empty", `"audiences":["a",""]`, `.audiences[1] "" is not an audience, such as https://api.example.com`),
	Entry("have a claim too many", `"require":`+claimsOf(11), ".require has 11 claims; at most 10 are allowed"),
	Entry("have a second claim that is wrong", `"require":[{"claim":"a","values":["b"]},{"claim":"a..b","values":["c","c"]}]`,
		`.require[1].claim "a..b" is not the name of a claim, such as email or realm_access.roles`, `.require[1].values[1] "c" is named twice`),
	Entry("have a header too many", `"claim_headers":`+claimHeadersOf(21), ".claim_headers has 21 headers; at most 20 are allowed"),
	Entry("have a header with a wrong claim", `"claim_headers":[{"header":"x-a","claim":"a"},{"header":"x-b","claim":"."}]`, `.claim_headers[1].claim "." is not the name of a claim, such as email or realm_access.roles`),
	Entry("have a header of the token, and a wrong one", `"from":{"header":"X-Token"},"claim_headers":[{"header":"x-token","claim":"a"},{"header":"te","claim":"b"}]`,
		`.claim_headers[0].header "x-token" carries the token; choose another header`, `.claim_headers[1].header "te" belongs to the connection and cannot be changed`),
	Entry("have a header without a name, and a token in a cookie", `"from":{"cookie":"a"},"claim_headers":[{"claim":"a"}]`, `.claim_headers[0].header "" is not an HTTP token`),
	Entry("have an upstream that is not a name", `"upstream":"a b"`, `.upstream "a b" may contain only the characters A-Z a-z 0-9 . _ -`),
	Entry("have keys and an upstream", `"upstream":"a","jwks":{"keys":[`+publicKey+`]}`, ".jwks cannot be combined with jwks_uri or upstream; remove these"),
	Entry("have a symmetric key without its value", `"jwks":{"keys":[{"kty":"oct"}]}`, ".jwks has a symmetric key (oct): whoever can verify with it can sign; use public keys"),
)

var _ = DescribeTable("The issuer of tokens", func(issuer string, faults ...string) {
	Expect(faultsOf(model.FilterJWT, `{"issuer":"`+issuer+`","jwks_uri":"https://us.test/keys"}`)).To(Equal(faults))
},
	Entry("has at most 2048 bytes", strings.Repeat("a", 2048)),
	Entry("has one byte too many", strings.Repeat("a", 2049), ".issuer has a control character, or more than 2048 bytes"),
	Entry("has a control character", `a\u0000`, ".issuer has a control character, or more than 2048 bytes"),
)

var _ = DescribeTable("The place of a token", func(from string, faults ...string) {
	Expect(faultsOf(model.FilterJWT, `{"issuer":"https://us.test","from":{`+from+`}}`)).To(Equal(faults))
},
	Entry("is a header", `"header":"x-token","prefix":"Token "`),
	Entry("is not Host", `"header":"Host"`, `.from.header "Host" cannot carry a token; for a cookie, use the field cookie`),
	Entry("is not a header of the connection", `"header":"TE"`, `.from.header "TE" cannot carry a token; for a cookie, use the field cookie`),
	Entry("is not a header that is no token", `"header":"x a"`, `.from.header "x a" is not an HTTP token`),
	Entry("has the longest prefix", `"header":"x","prefix":"`+strings.Repeat("a", 255)+`"`),
	Entry("has a longer prefix", `"header":"x","prefix":"`+strings.Repeat("a", 256)+`"`, `.from.prefix "`+strings.Repeat("a", 255)+`..." cannot precede a token in a header; an example is "Bearer "`),
	Entry("has a prefix that is not in ASCII", `"header":"x","prefix":"ä"`, `.from.prefix "ä" cannot precede a token in a header; an example is "Bearer "`),
	Entry("is a cookie", `"cookie":"_a-1"`),
	Entry("is the longest parameter", `"query":"`+strings.Repeat("a", 255)+`"`),
	Entry("is a longer parameter", `"query":"`+strings.Repeat("a", 256)+`"`, `.from "`+strings.Repeat("a", 255)+`..." must be a name of A-Z a-z 0-9 _ - of at most 255 characters`),
	Entry("is a cookie with a semicolon", `"cookie":"a;b"`, `.from "a;b" must be a name of A-Z a-z 0-9 _ - of at most 255 characters`),
)

// claimsOf lists n required claims, claimHeadersOf n headers with a claim.
func claimsOf(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`{"claim":"a","values":["b"]},`, n), ",") + "]"
}

func claimHeadersOf(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"header":"x-%d","claim":"a"}`, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}
