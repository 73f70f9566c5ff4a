package policies_test

import (
	"fmt"
	"sync"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// tokenIssuer is one for all types: explain does not know whose keys they are.
var tokenIssuer = sync.OnceValue(func() *testkit.TokenIssuer { return testkit.NewTokenIssuer("https://issuer.test", "one") })

func jwt() policy {
	issuer, other := tokenIssuer(), testkit.NewTokenIssuer("https://other.test", "two")
	bearer := func(i *testkit.TokenIssuer, claims object) string { return "Authorization: Bearer " + i.Token(claims) }
	staff := bearer(issuer, object{"aud": "shop", "sub": "ann", "groups": []string{"users", "staff"}})
	nobody := bearer(issuer, object{"aud": []string{"cart", "shop"}, "sub": "bob", "groups": "users"})
	const realm, ofEmpty = `Bearer realm="http://shop.test/shop"`, `Bearer realm="http://shop.test/empty"`
	return policy{
		kind: "http_filter_jwt", filter: "envoy.filters.http.jwt_authn", denies: 401,
		config: `{"issuer":"https://issuer.test","audiences":["shop"],"jwks":` + issuer.JWKS() + `,
			"require":[{"claim":"groups","values":["admins","staff"]}],"claim_headers":[{"claim":"sub","header":"X-User"}]}`,
		changed: `{"issuer":"https://other.test","audiences":["cart"],"jwks":` + other.JWKS() + `,"from":{"header":"X-Token"},"forward":true}`,
		// says are the headers that the backend received, or why none did.
		says: func(a answer) string {
			if a.seen == nil {
				return fmt.Sprint(a.status, " ", a.header.Get("WWW-Authenticate"), " ", a.body)
			}
			return fmt.Sprint(a.status, " ", len(a.seen.Get("Authorization")), " ", len(a.seen.Get("X-Token")) > 0, " ", a.seen.Values("X-User"))
		},
		requests: []request{
			{what: "one without a token", off: "200 0 false []", on: "401 " + realm + " Jwt is missing\n", changed: "401 " + realm + " Jwt is missing\n", both: "401 " + realm + " Jwt is missing\n"},
			{
				what: "one with a token", header: []string{staff, "X-User: eve", "x-user: eve"}, off: fmt.Sprint("200 ", len(staff)-15, " false [eve eve]"),
				exempt: fmt.Sprint("200 ", len(staff)-15, " false []"),
				on:     "200 0 false [ann]", changed: "401 " + realm + " Jwt is missing\n", both: "401 " + realm + " Jwt is missing\n",
			},
			{
				what: "one without the claim", header: []string{nobody}, off: fmt.Sprint("200 ", len(nobody)-15, " false []"),
				on: "403  the token does not have the claims that are required here\n", changed: "401 " + realm + " Jwt is missing\n", both: "401 " + realm + " Jwt is missing\n",
			},
			{
				what: "one with a token of the other issuer", header: []string{"X-Token: " + other.Token(object{"aud": "cart"}), "X-User: eve"}, off: "200 0 true [eve]", exempt: "200 0 true []", exemptChanged: "200 0 true []",
				on: "401 " + realm + " Jwt is missing\n", changed: "200 0 true [eve]", both: "200 0 true []",
			},
			{
				what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200 0 false []",
				on: "401 " + realm + " Jwt is missing\n", changed: "401 " + realm + " Jwt is missing\n", both: "401 " + realm + " Jwt is missing\n",
			},
			{what: "a route without upstreams", path: "/empty", off: "503  this service is not available\n", on: "401 " + ofEmpty + " Jwt is missing\n", changed: "401 " + ofEmpty + " Jwt is missing\n", both: "401 " + ofEmpty + " Jwt is missing\n"},
			{what: "a redirect", host: "moved.test", off: "301  ", on: "301  ", changed: "301  ", both: "301  "},
			{what: "a path that no route has", path: "/nowhere", off: "404  nothing is served for this host and path\n", on: "404  nothing is served for this host and path\n", changed: "404  nothing is served for this host and path\n", both: "404  nothing is served for this host and path\n"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.issuer", "is required: it is the iss of the tokens"},
			{`{"issuer":"me"}`, "Filter_config.issuer", `"me" is not a URL such as https://login.example.com/token`},
			{`{"issuer":"me","jwks_uri":"file:///etc/passwd"}`, "Filter_config.jwks_uri", `"file:///etc/passwd" is not a URL such as https://login.example.com/token`},
			{`{"issuer":"me","jwks":{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}}`, "Filter_config.jwks", "has a symmetric key (oct): whoever can verify with it can sign; use public keys"},
			{`{"issuer":"me","jwks":{"keys":[]}}`, "Filter_config.jwks", "has 0 keys, none of which can be used: tokens are verified with RSA keys of 2048 bits or more, elliptic-curve keys (P-256, P-384, P-521) or Ed25519 keys, for signatures"},
			{`{"issuer":"me","jwks":` + issuer.JWKS() + `,"jwks_uri":"https://a.test/keys"}`, "Filter_config.jwks", "cannot be combined with jwks_uri or upstream; remove these"},
			{`{"issuer":"us","hmac_key":"` + sharedKey[1:] + `"}`, "Filter_config.hmac_key", "has fewer than 32 bytes: a short key is guessed from one token"},
			{`{"issuer":"us","hmac_key":"` + sharedKey + `","jwks":` + issuer.JWKS() + `}`, "Filter_config.hmac_key", "cannot be combined with jwks, jwks_uri or upstream; remove these"},
			{`{"issuer":"us","hmac_key":"` + sharedKey + `","jwks_uri":"https://a.test/keys"}`, "Filter_config.hmac_key", "cannot be combined with jwks, jwks_uri or upstream; remove these"},
			{`{"issuer":"us","hmac_key":"-----BEGIN PUBLIC KEY-----MFkwEwYHKoZIzj0CAQYI-----END PUBLIC KEY-----"}`, "Filter_config.hmac_key", "is a public or private key: everybody may know a public key; only a random text that nobody else knows is a key here"},
			{`{"issuer":"us","hmac_key":7}`, "Filter_config", `hmac_key must be a string, or {"secret": NAME} with the name of a secret`},
			{`{"issuer":"us","HMAC_key":"` + sharedKey + `"}`, "Filter_config.HMAC_key", "unknown field; write it hmac_key"},
			{`{"issuer":"us","hmac_key":"` + sharedKey + `","hmac_algorithm":"HS512"}`, "Filter_config.hmac_key", "has fewer than 64 bytes: a short key is guessed from one token"},
			{`{"issuer":"us","hmac_key":"` + sharedKey + `","hmac_algorithm":"none"}`, "Filter_config.hmac_algorithm", `"none" is not one of HS256, HS384, HS512`},
			{`{"issuer":"us","hmac_key":""}`, "Filter_config.hmac_key", "has fewer than 32 bytes: a short key is guessed from one token"},
			{`{"issuer":"https://a.test","other_issuers":[{"issuer":"us","hmac_key":"a"}]}`, "Filter_config.other_issuers[0].hmac_key", "has fewer than 32 bytes: a short key is guessed from one token"},
			{`{"issuer":"https://a.test","other_issuers":[{"issuer":"https://a.test"}]}`, "Filter_config.other_issuers[0].issuer", `"https://a.test" is listed twice: the keys of one issuer are in one place`},
			{`{"issuer":"https://a.test","other_issuers":[{"issuer":"us","jwks_uri":"http://them.example/keys"}]}`, "Filter_config.other_issuers[0].jwks_uri", `"http://them.example/keys" is plain HTTP to a public host: anyone on the network path can replace the provider's keys. Use https, or name the upstream through which the keys are fetched`},
			{`{"issuer":"https://a.test","scopes":[]}`, "Filter_config.scopes", "is empty; name at least one scope, or omit scopes"},
			{`{"issuer":"https://a.test","scopes":["a b"]}`, "Filter_config.scopes[0]", `"a b" is not a scope, such as read`},
			{`{"issuer":"https://a.test","audiences":[]}`, "Filter_config.audiences", "is empty, so no token would be accepted; name at least one audience, or omit audiences"},
			{`{"issuer":"https://a.test","from":{"header":"a","query":"b"}}`, "Filter_config.from", "takes exactly one of header, cookie and query, because it would be unclear which of two tokens counts"},
			{`{"issuer":"https://a.test","from":{"header":"Cookie"}}`, "Filter_config.from.header", `"Cookie" cannot carry a token; for a cookie, use the field cookie`},
			{`{"issuer":"https://a.test","from":{"cookie":"a.*"}}`, "Filter_config.from", `"a.*" must be a name of A-Z a-z 0-9 _ - of at most 255 characters`},
			{`{"issuer":"https://a.test","from":{"cookie":"a","prefix":"b"}}`, "Filter_config.from.prefix", "requires header"},
			{`{"issuer":"https://a.test","require":[{"claim":"groups","values":[]}]}`, "Filter_config.require[0].values", "must list at least one value; a token needs one of them"},
			{`{"issuer":"https://a.test","claim_headers":[{"claim":"sub","header":"Authorization"}]}`, "Filter_config.claim_headers[0].header", `"Authorization" carries the tokens of users and cannot be changed; choose another header`},
			{`{"issuer":"https://a.test","from":{"header":"x-a"},"claim_headers":[{"claim":"sub","header":"X-A"}]}`, "Filter_config.claim_headers[0].header", `"X-A" carries the token; choose another header`},
		},
	}
}
