package model_test

import (
	"encoding/json"
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
		sources := func(config string) []model.ProviderSource { return model.SourcesOf(filter(config).Parse().Spec) }
		Expect(sources(`{"issuer":"https://us.test","upstream":"idp"}`)).To(Equal([]model.ProviderSource{{Issuer: "https://us.test", Discover: true, Upstream: "idp", UpstreamFor: "https://us.test"}}))
		Expect(sources(`{"issuer":"us","jwks_uri":"https://us.test/keys"}`)).To(Equal([]model.ProviderSource{{JWKSURI: "https://us.test/keys"}}))
		Expect(sources(`{"issuer":"us","jwks":{"keys":[` + publicKey + `]}}`)).To(BeEmpty())
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

var _ = DescribeTable("The shared key of tokens", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterJWT, `{"issuer":"us",`+config+`}`)).To(Equal(faults))
},
	Entry("has 32 bytes", `"hmac_key":"`+strings.Repeat("a", 32)+`"`),
	Entry("has a byte too few", `"hmac_key":"`+strings.Repeat("a", 31)+`"`, ".hmac_key has fewer than 32 bytes: a short key is guessed from one token"),
	Entry("has 1024 bytes", `"hmac_key":"`+strings.Repeat("a", 1024)+`"`),
	Entry("has a byte too many", `"hmac_key":"`+strings.Repeat("a", 1025)+`"`, ".hmac_key has more than 1024 bytes"),
	Entry("is under a name in other letters, which would not be sealed", `"HMAC_key":"`+strings.Repeat("a", 32)+`"`, ".HMAC_key unknown field; write it hmac_key"),
	Entry("is empty", `"hmac_key":""`, ".hmac_key has fewer than 32 bytes: a short key is guessed from one token"),
	Entry("has 48 bytes for HS384", `"hmac_key":"`+strings.Repeat("a", 48)+`","hmac_algorithm":"HS384"`),
	Entry("has a byte too few for HS384", `"hmac_key":"`+strings.Repeat("a", 47)+`","hmac_algorithm":"HS384"`, ".hmac_key has fewer than 48 bytes: a short key is guessed from one token"),
	Entry("has 64 bytes for HS512", `"hmac_key":"`+strings.Repeat("a", 64)+`","hmac_algorithm":"HS512"`),
	Entry("has a byte too few for HS512", `"hmac_key":"`+strings.Repeat("a", 63)+`","hmac_algorithm":"HS512"`, ".hmac_key has fewer than 64 bytes: a short key is guessed from one token"),
	Entry("is for an algorithm with public keys", `"hmac_key":"`+strings.Repeat("a", 64)+`","hmac_algorithm":"RS256"`, `.hmac_algorithm "RS256" is not one of HS256, HS384, HS512`),
	Entry("is for no algorithm", `"hmac_key":"`+strings.Repeat("a", 64)+`","hmac_algorithm":"none"`, `.hmac_algorithm "none" is not one of HS256, HS384, HS512`),
	Entry("is missing", `"jwks_uri":"https://us.test/keys","hmac_algorithm":"HS256"`, ".hmac_algorithm requires hmac_key; the algorithm of a public key is in the key"),
	Entry("is in a secret", `"hmac_key":{"secret":"a"}`),
	Entry("is in a secret that has no name", `"hmac_key":{"secret":"a b"}`, ".hmac_key.secret must be the name of a secret, of A-Z a-z 0-9 . _ -; create a secret with the text as its Secret_value, and give its name"),
	Entry("ends with a line feed", `"hmac_key":"`+strings.Repeat("a", 32)+`\n"`, ".hmac_key begins or ends with a space, or has a control character, such as the line feed at the end of a file"),
	Entry("is the text of a public key", `"hmac_key":"-----BEGIN PUBLIC KEY-----`+strings.Repeat("a", 32)+`"`, ".hmac_key "+aPublicKey),
	Entry("is a public key as JSON", `"hmac_key":"`+strings.ReplaceAll(publicKey, `"`, `\"`)+`"`, ".hmac_key "+aPublicKey),
	Entry("is a public key in base64", `"hmac_key":"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEpUHcyMSQlA3DIJj770ZUu6s1w53YcbcXEkufTcf/ggwQ19vysXrGmyOXYnECkhgUvrSv2wyAd9+dSaEEFNKkqg=="`, ".hmac_key "+aPublicKey),
	Entry("is beside public keys", `"hmac_key":"`+strings.Repeat("a", 32)+`","jwks":{"keys":[`+publicKey+`]}`, ".hmac_key cannot be combined with jwks, jwks_uri or upstream; remove these"),
	Entry("is beside the URL of keys", `"hmac_key":"`+strings.Repeat("a", 32)+`","jwks_uri":"https://us.test/keys"`, ".hmac_key cannot be combined with jwks, jwks_uri or upstream; remove these"),
	Entry("is beside an upstream", `"hmac_key":{"secret":"a"},"upstream":"b"`, ".hmac_key cannot be combined with jwks, jwks_uri or upstream; remove these"),
)

const aPublicKey = "is a public or private key: everybody may know a public key; only a random text that nobody else knows is a key here"

var _ = DescribeTable("The scopes of tokens", func(scopes string, faults ...string) {
	Expect(faultsOf(model.FilterJWT, `{"issuer":"https://us.test","scopes":`+scopes+`}`)).To(Equal(faults))
},
	Entry("are at most 10", names("a", 10)),
	Entry("are one too many", names("a", 11), ".scopes has 11 elements; at most 10 are allowed"),
	Entry("are one at least", `[]`, ".scopes is empty; name at least one scope, or omit scopes"),
	Entry("are words", `["a","b c"]`, `.scopes[1] "b c" is not a scope, such as read`),
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

var _ = DescribeTable("Several issuers of tokens", func(others string, faults ...string) {
	Expect(faultsOf(model.FilterJWT, `{"issuer":"https://us.test","other_issuers":`+others+`}`)).To(Equal(faults))
},
	Entry("have their own keys and conditions", `[{"issuer":"them","audiences":["a"],"jwks":{"keys":[`+publicKey+`]},"scopes":["b"],"require":[{"claim":"c","values":["d"]}],"claim_headers":[{"claim":"sub","header":"x-user"}]},{"issuer":"https://they.test"},{"issuer":"you","hmac_key":{"secret":"a"}}]`),
	Entry("are ten", issuers(9)),
	Entry("are one too many", issuers(10), ".other_issuers has 10 issuers; at most 9 are allowed"),
	Entry("are the same", `[{"issuer":"https://us.test"}]`, `.other_issuers[0].issuer "https://us.test" is listed twice: the keys of one issuer are in one place`),
	Entry("are the same among the others", `[{"issuer":"https://a.test"},{"issuer":"https://a.test"}]`, `.other_issuers[1].issuer "https://a.test" is listed twice: the keys of one issuer are in one place`),
	Entry("have no name", `[{"jwks_uri":"https://a.test/keys"}]`, ".other_issuers[0].issuer is required: it is the iss of the tokens"),
	Entry("have no keys", `[{"issuer":"a"}]`, `.other_issuers[0].issuer "a" is not a URL such as https://login.example.com/token`),
	Entry("have a short key", `[{"issuer":"a","hmac_key":"b"}]`, ".other_issuers[0].hmac_key has fewer than 32 bytes: a short key is guessed from one token"),
	Entry("have a key under a name in other letters, which would not be sealed", `[{"issuer":"a","Hmac_key":"a key of 32 bytes that is sealed"}]`, ".other_issuers[0].Hmac_key unknown field; write it hmac_key"),
	Entry("have keys that anybody could replace on the way", `[{"issuer":"a","jwks_uri":"http://them.example/keys"}]`,
		`.other_issuers[0].jwks_uri "http://them.example/keys" is plain HTTP to a public host: anyone on the network path can replace the provider's keys. Use https, or name the upstream through which the keys are fetched`),
	Entry("look for their tokens in different places", `[{"issuer":"https://a.test","from":{"cookie":"b"}}]`, ` unknown field "from"`),
	Entry("set a header that carries tokens", `[{"issuer":"https://a.test","claim_headers":[{"claim":"b","header":"authorization"}]}]`, `.other_issuers[0].claim_headers[0].header "authorization" carries the tokens of users and cannot be changed; choose another header`),
	Entry("are of the wrong type", `[{"issuer":7}]`, ".other_issuers.issuer must be a string, not a number"),
)

// issuers returns that many.
func issuers(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"issuer":"https://%d.test"}`, i)
	}
	return "[" + strings.Join(list, ",") + "]"
}

var _ = Describe("A filter for tokens of several issuers", func() {
	const text = `{"issuer":"us","hmac_key":"a key of 32 bytes for one issuer!","other_issuers":[` +
		`{"issuer":"https://b.test"},{"issuer":"c","hmac_key":"a key of 32 bytes for the other!"},{"issuer":"d","hmac_key":{"secret":"e"}},` +
		`{"issuer":"f","jwks_uri":"https://f.test","upstream":"g"},{"issuer":"h","jwks_uri":"https://f.test","upstream":"g"}]}`

	It("names what all of them name, and asks each of them once", func() {
		f := &model.Filter{Name: "a", Type: model.FilterJWT, Config: text}
		Expect(f.Validate()).To(BeEmpty())
		Expect(f.Names()).To(ConsistOf(model.SecretKey("e"), model.UpstreamKey("g")))
		Expect(model.SourcesOf(f.Parse().Spec)).To(Equal([]model.ProviderSource{
			{Issuer: "https://b.test", Discover: true}, {JWKSURI: "https://f.test", Upstream: "g", UpstreamFor: "https://f.test"},
		}))
	})

	It("knows the keys of each", func() {
		f := &model.Filter{Name: "a", Type: model.FilterJWT, Config: text}
		spec := f.Parse().Spec
		known := model.Learned(spec, model.Providers{{Source: model.ProviderSource{Issuer: "https://b.test", Discover: true}, JWKS: "b"}}).(*model.JWTFilter)
		keys, fault := known.OtherIssuers[0].Keys()
		Expect([]string{keys, fault}).To(Equal([]string{"b", ""}))
		_, fault = known.OtherIssuers[3].Keys()
		Expect(fault).To(Equal("the issuer has not answered yet"))
		_, fault = spec.(*model.JWTFilter).OtherIssuers[0].Keys()
		Expect(fault).To(Equal("the issuer has not answered yet"), "what is stored is as it was")
	})

	It("keeps the key of an issuer, wherever it is in the list", func() {
		s := sealer{}
		stored := &model.Filter{Name: "a", Type: model.FilterJWT, Config: text}
		Expect(stored.Seal(s, nil)).To(Succeed())
		Expect(string(stored.Config)).To(And(
			ContainSubstring(`"sealed:v1:`+model.SharedKeyPlace("a", "")+`:a key of 32 bytes for one issuer!"`),
			ContainSubstring(`"sealed:v1:filter/a/other_issuers[c].hmac_key:a key of 32 bytes for the other!"`),
		))
		shown := stored.Redact().(*model.Filter)
		Expect(string(shown.Config)).To(And(ContainSubstring(`"issuer":"c","hmac_key":"<redacted>"`), Not(ContainSubstring("sealed"))))
		moved := &model.Filter{Name: "a", Type: model.FilterJWT, Config: `{"issuer":"c","hmac_key":"x key of 32 bytes for one issuer!","other_issuers":[{"issuer":"us"},{"hmac_key":"<redacted>","issuer":"c"}]}`}
		Expect(moved.Seal(s, stored)).To(Succeed())
		var was, is struct {
			Others []struct {
				Issuer string `json:"issuer"`
				Key    any    `json:"hmac_key"`
			} `json:"other_issuers"`
		}
		Expect(json.Unmarshal([]byte(stored.Config), &was)).To(Succeed())
		Expect(json.Unmarshal([]byte(moved.Config), &is)).To(Succeed())
		Expect(is.Others[1].Key).To(Equal(was.Others[1].Key))
		other := &model.Filter{Name: "a", Type: model.FilterJWT, Config: `{"issuer":"us","other_issuers":[{"issuer":"x","hmac_key":"<redacted>"}]}`}
		Expect(other.Seal(s, stored)).To(MatchError(ContainSubstring("a secret cannot be stored")))
	})

	It("advises against a header that each of them may set", func() {
		advice := func(one, other string) []string {
			f := &model.Filter{Name: "a", Type: model.FilterJWT, Config: model.JSON(`{"issuer":"us","audiences":["a"],"jwks_uri":"https://us.test","claim_headers":[{"claim":"sub","header":"x-user"}` + one +
				`],"other_issuers":[{"issuer":"them","audiences":["a"],"jwks_uri":"https://them.test","claim_headers":[{"claim":"email","header":"` + other + `"}]}]}`)}
			return f.Parse().Spec.(*model.JWTFilter).Advice()
		}
		Expect(advice("", "X-User")).To(Equal([]string{"sets x-user from tokens of us and of them: each of them can name the users of the other; use other headers, or add one with the claim iss"}))
		Expect(advice("", "x-partner")).To(BeEmpty())
		Expect(advice(`,{"claim":"iss","header":"x-issuer"}`, "x-user")).To(BeEmpty())
	})
})

// sealer shows what it seals, and for what.
type sealer struct{}

func (sealer) Seal(plain, place string) (string, error) {
	return model.SealedPrefix + place + ":" + plain, nil
}

func (sealer) Unseal(sealed, place string) (string, error) {
	return strings.TrimPrefix(sealed, model.SealedPrefix+place+":"), nil
}
