package policies_test

import (
	"net/http"
	"strconv"
	"strings"
)

// saysAny returns the client that the backend receives, the credentials that it receives, and the scheme of
// a challenge.
func saysAny(a answer) string {
	said := strconv.Itoa(a.status)
	if values := a.seen["X-Client"]; len(values) > 0 {
		said += " from " + values[0]
	}
	for _, header := range []string{"Authorization", "X-Api-Key", "X-Gatehouse-Key"} {
		if len(a.seen[header]) > 0 {
			said += " with " + header
		}
	}
	if a.status == http.StatusUnauthorized {
		scheme, _, _ := strings.Cut(a.header.Get("Www-Authenticate"), " ")
		said += " " + scheme
	}
	return said
}

func anyOf() policy {
	const ann = "correct-horse-battery"
	issuer := tokenIssuer()
	staff := "Authorization: Bearer " + issuer.Token(object{"aud": "shop", "sub": "ann", "groups": []string{"staff"}})
	other := "Authorization: Bearer " + issuer.Token(object{"aud": "shop", "sub": "bob"})
	jwt := `"jwt":{"issuer":"https://issuer.test","audiences":["shop"],"jwks":` + issuer.JWKS() + `,"require":[{"claim":"groups","values":["staff"]}]}`
	users := `"basicauth":{"users":[{"name":"ann","password":"` + ann + `"}]}`
	annHeader := basic("ann", ann)
	return policy{
		kind: "http_filter_anyof", filter: "envoy.filters.http.rbac/any", denies: http.StatusUnauthorized, given: givenKeys,
		says:     saysAny,
		redacted: "-:{SHA}AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		config:   `{"apikey":{"keys":"partners"},` + users + `}`,
		changed:  `{` + users + `,` + jwt + `}`,
		requests: []request{
			{what: "nothing", off: "200", on: "401 Basic", changed: "401 Basic", both: "401 Basic"},
			{what: "a key", header: []string{withKey("partners", "web")}, off: "200 with X-Api-Key", on: "200 from partners/web", changed: "401 Basic", both: "401 Basic"},
			{what: "a key of another set", reason: "http_filter_apikey", header: []string{withKey("partners.old", "web")}, off: "200 with X-Api-Key", on: "401 ApiKey", changed: "401 Basic", both: "401 Basic"},
			{what: "a wrong key", reason: "http_filter_apikey", header: []string{"X-Api-Key: x"}, off: "200 with X-Api-Key", on: "401 ApiKey", changed: "401 Basic", both: "401 Basic"},
			{what: "an empty key", reason: "http_filter_apikey", header: []string{"X-Api-Key: "}, off: "200 with X-Api-Key", on: "401 ApiKey", changed: "401 Basic", both: "401 Basic"},
			{what: "a password", header: []string{annHeader}, off: "200 with Authorization", on: "200 from ann", changed: "200 from ann", both: "200 from ann"},
			{what: "a wrong password", reason: "http_filter_basicauth", header: []string{basic("ann", "x")}, off: "200 with Authorization", on: "401 Basic", changed: "401 Basic", both: "401 Basic"},
			{what: "a key and a password", header: []string{withKey("partners", "web"), annHeader}, off: "200 with Authorization with X-Api-Key", on: "200 from ann", changed: "200 from ann with X-Api-Key", both: "200 from ann"},
			{what: "a key and a wrong password", reason: "http_filter_basicauth", header: []string{withKey("partners", "web"), basic("ann", "x")}, off: "200 with Authorization with X-Api-Key", on: "401 Basic", changed: "401 Basic", both: "401 Basic"},
			{what: "a wrong key and a password", reason: "http_filter_apikey", header: []string{"X-Api-Key: x", annHeader}, off: "200 with Authorization with X-Api-Key", on: "401 ApiKey", changed: "200 from ann with X-Api-Key", both: "200 from ann"},
			{what: "a token", header: []string{staff}, off: "200 with Authorization", on: "401 Basic", changed: "200", both: "200"},
			{what: "a token without the claim", header: []string{other}, off: "200 with Authorization", on: "401 Basic", changed: "401 Basic", both: "401 Basic"},
			{what: "who says who it is", header: []string{"X-Client: ann"}, off: "200 from ann", exempt: "200", on: "401 Basic", changed: "401 Basic", both: "401 Basic"},
			{what: "the inner header", header: []string{"X-Gatehouse-Key: Basic " + withKey("partners", "web")[len("X-Api-Key: "):]}, off: "200 with X-Gatehouse-Key", exempt: "200", on: "401 Basic", changed: "401 Basic", both: "401 Basic"},
			{what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200", on: "401 Basic", changed: "401 Basic", both: "401 Basic"},
			{what: "a route without upstreams", path: "/empty", off: "503", on: "401 Basic", changed: "401 Basic", both: "401 Basic"},
			{what: "a redirect to HTTPS", host: "moved.test", off: "301", on: "301", changed: "301", both: "301"},
			{what: "a path that no route has", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config", "has 0 credentials; specify at least two of apikey, basicauth and jwt, or attach the filter of a single credential instead"},
			{`{` + users + `}`, "Filter_config", "has 1 credentials; specify at least two of apikey, basicauth and jwt, or attach the filter of a single credential instead"},
			{`{"apikey":{},` + users + `}`, "Filter_config.apikey.keys", "is required"},
			{`{"apikey":{"keys":"partners","header":"x'y"},` + users + `}`, "Filter_config.apikey.header", `"x'y" has a character that is not allowed in the name of this header`},
			{`{"apikey":{"keys":"partners"},"basicauth":{"users":[{"name":"ann","password":"short"}]}}`, "Filter_config.basicauth.users[0].password", "has fewer than 12 characters: Envoy holds its SHA-1, from which a short password is found quickly"},
			{`{"apikey":{"keys":"partners"},"BasicAuth":{"users":[{"name":"ann","password":"` + ann + `"}]}}`, "Filter_config.BasicAuth", "unknown field; write it basicauth"},
			{`{"apikey":{"keys":"partners"},"basicauth":[]}`, "Filter_config.basicauth", "must be an object"},
			{`{` + users + `,"jwt":{"issuer":"a","jwks":` + issuer.JWKS() + `,"forward":true}}`, "Filter_config.jwt.forward", "must equal basicauth.forward: both credentials are in Authorization, which is either removed or kept"},
			{`{` + users + `,"jwt":{"issuer":"a","jwks":` + issuer.JWKS() + `,"optional":true}}`, "Filter_config.jwt.optional", "is not possible here: a request needs one of the credentials, whichever it is"},
			{`{"of":["a"]}`, "Filter_config", `unknown field "of"`},
		},
	}
}
