package policies_test

import (
	"crypto/sha1" //nolint:gosec // what Envoy compares
	"encoding/base64"
	"net/http"
	"strconv"
)

// keyOf returns the key with a known secret in a set of these worlds.
func keyOf(set, name string) (key, hash string) {
	secret := "secret of " + set + "/" + name
	sum := sha1.Sum([]byte(secret)) //nolint:gosec // see above
	return base64.StdEncoding.EncodeToString([]byte(set + "/" + name + ":" + secret)), "{SHA}" + base64.StdEncoding.EncodeToString(sum[:])
}

// withKey returns the header with a key.
func withKey(set, name string) string {
	key, _ := keyOf(set, name)
	return "X-Api-Key: " + key
}

// givenKeys creates them once.
func givenKeys(w *world) {
	if a, err := w.api.Get(limit(), "/keyset/partners"); err == nil && a.Status == http.StatusOK {
		return
	}
	for _, set := range []string{"partners", "partners.old", "staff"} {
		w.post("/keyset", "Keyset_name="+set)
		for _, name := range []string{"web", "mobile"} {
			_, hash := keyOf(set, name)
			w.post("/keyset/"+set+"/key", "Key_name="+name, "Key_hash="+hash)
		}
	}
}

// saysClient returns the client that the backend receives, and what it receives of the
// key.
func saysClient(a answer) string {
	said := strconv.Itoa(a.status)
	for _, header := range []string{"X-Client", "X-Api-Key", "X-Gatehouse-Key"} {
		if values := a.seen[header]; len(values) > 0 && header == "X-Client" {
			said += " from " + values[0]
		} else if len(values) > 0 {
			said += " with " + header
		}
	}
	if a.status == http.StatusUnauthorized && a.header.Get("Www-Authenticate") != "ApiKey" {
		said += " with a question for browsers"
	}
	return said
}

func apiKey() policy {
	web, _ := keyOf("partners", "web")
	encoded := func(text string) string { return "X-Api-Key: " + base64.StdEncoding.EncodeToString([]byte(text)) }
	const name = `may contain only the characters A-Z a-z 0-9 . _ -`
	return policy{
		kind: "http_filter_apikey", filter: "envoy.filters.http.rbac/clients", denies: http.StatusForbidden, given: givenKeys, says: saysClient,
		config:  `{"keys":"partners"}`,
		changed: `{"keys":"partners","clients":["mobile","none"]}`,
		requests: []request{
			{what: "no key", off: "200", on: "401", changed: "401", both: "401"},
			{what: "a key of the set", header: []string{withKey("partners", "web")}, off: "200 with X-Api-Key", on: "200 from partners/web", changed: "403", both: "403"},
			{what: "a key that is named", header: []string{withKey("partners", "mobile")}, off: "200 with X-Api-Key", on: "200 from partners/mobile", changed: "200 from partners/mobile", both: "200 from partners/mobile"},
			{what: "a key of another set", header: []string{withKey("staff", "mobile")}, off: "200 with X-Api-Key", on: "401", changed: "401", both: "401"},
			{what: "a key of a set whose name begins so", header: []string{withKey("partners.old", "mobile")}, off: "200 with X-Api-Key", on: "401", changed: "401", both: "401"},
			{what: "a wrong secret", header: []string{encoded("partners/web:secret of partners/we")}, off: "200 with X-Api-Key", on: "401", changed: "401", both: "401"},
			{what: "the secret of another key", header: []string{encoded("partners/web:secret of partners/mobile")}, off: "200 with X-Api-Key", on: "401", changed: "401", both: "401"},
			{what: "the one that stands for nobody", header: []string{encoded("-:")}, off: "200 with X-Api-Key", on: "401", changed: "401", both: "401"},
			{what: "a key without a colon", header: []string{encoded("partners/web")}, off: "200 with X-Api-Key", on: "401", changed: "401", both: "401"},
			{what: "a key with a line feed", header: []string{encoded("partners/web\n:secret of partners/web")}, off: "200 with X-Api-Key", on: "401", changed: "401", both: "401"},
			{what: "what is no base64", header: []string{"X-Api-Key: %%%"}, off: "200 with X-Api-Key", on: "401", changed: "401", both: "401"},
			{what: "a key as Basic", header: []string{"X-Api-Key: Basic " + web}, off: "200 with X-Api-Key", on: "401", changed: "401", both: "401"},
			{what: "a key elsewhere", header: []string{"Authorization: Basic " + web}, off: "200", on: "401", changed: "401", both: "401"},
			{what: "the inner header", header: []string{"X-Gatehouse-Key: Basic " + web}, off: "200 with X-Gatehouse-Key", exempt: "200", on: "401", changed: "401", both: "401"},
			{what: "the inner header with a key", header: []string{withKey("partners", "mobile"), "X-Gatehouse-Key: Basic " + web}, off: "200 with X-Api-Key with X-Gatehouse-Key", exempt: "200 with X-Api-Key", on: "200 from partners/mobile", changed: "200 from partners/mobile", both: "200 from partners/mobile"},
			{what: "a made-up client", header: []string{"X-Client: boss"}, off: "200 from boss", exempt: "200", on: "401", changed: "401", both: "401"},
			{what: "a made-up client with a key", header: []string{withKey("partners", "mobile"), "X-Client: boss"}, off: "200 from boss with X-Api-Key", exempt: "200 with X-Api-Key", on: "200 from partners/mobile", changed: "200 from partners/mobile", both: "200 from partners/mobile"},
			{what: "two keys, the first of which is good", header: []string{withKey("partners", "mobile"), encoded("partners/web:x")}, off: "200 with X-Api-Key", on: "200 from partners/mobile", changed: "200 from partners/mobile", both: "200 from partners/mobile"},
			{what: "two keys, the second of which is good", header: []string{encoded("partners/web:x"), withKey("partners", "mobile")}, off: "200 with X-Api-Key", on: "401", changed: "401", both: "401"},
			{what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200", on: "401", changed: "401", both: "401"},
			{what: "a route without upstreams", path: "/empty", off: "503", on: "401", changed: "401", both: "401"},
			{what: "a redirect", host: "moved.test", off: "301", on: "401", changed: "401", both: "401"},
			{what: "a path that no route has", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
			{what: "a host that no service has", host: "else.test", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.keys", "is required"},
			{`{"keys":"a/b"}`, "Filter_config.keys", `"a/b" ` + name},
			{`{"keys":"partners","clients":[]}`, "Filter_config.clients", "is empty, so no client would be allowed; name at least one, or omit clients"},
			{`{"keys":"partners","clients":["a:b"]}`, "Filter_config.clients", `"a:b" ` + name},
			{`{"keys":"partners","header":"Authorization"}`, "Filter_config.header", `"authorization" has another meaning; choose a header such as x-api-key`},
			{`{"keys":"partners","header":"X-Client"}`, "Filter_config.header", `"x-client" has another meaning; choose a header such as x-api-key`},
			{`{"keys":"partners","header":":path"}`, "Filter_config.header", `":path" has a character that is not allowed in the name of this header`},
			{`{"keys":"partners","header":"a%b"}`, "Filter_config.header", `"a%b" has a character that is not allowed in the name of this header`},
			{`{"keys":"partners","header":"host"}`, "Filter_config.header", `"host" cannot be changed; the rewrite of Route_config changes path and host`},
			{`{"keys":"partners","header":"a b"}`, "Filter_config.header", `"a b" is not an HTTP token`},
			{`{"keys":"partners","header":"x-a","from":[{"query":"a"}]}`, "Filter_config.header", "cannot be combined with from; add it to from, at its place in the order"},
			{`{"keys":"partners","from":[]}`, "Filter_config.from", "is empty, so no key would be found; name at least one place, or omit from"},
			{`{"keys":"partners","from":[{},{"query":"1"},{"query":"2"},{"query":"3"},{"query":"4"},{"query":"5"},{"query":"6"},{"query":"7"},{"query":"8"}]}`, "Filter_config.from", "has 9 places; at most 8 are allowed"},
			{`{"keys":"partners","from":[{"query":"a"},{}]}`, "Filter_config.from[1]", "takes exactly one of header, cookie and query"},
			{`{"keys":"partners","from":[{"query":"a","cookie":"a"}]}`, "Filter_config.from[0]", "takes exactly one of header, cookie and query"},
			{`{"keys":"partners","from":[{"header":"X-A"},{"header":"x-a"}]}`, "Filter_config.from[1]", "is listed twice"},
			{`{"keys":"partners","from":[{"header":"X-Gatehouse-Key"}]}`, "Filter_config.from[0].header", `"x-gatehouse-key" has another meaning; choose a header such as x-api-key`},
			{`{"keys":"partners","from":[{"header":"x'y"}]}`, "Filter_config.from[0].header", `"x'y" has a character that is not allowed in the name of this header`},
			{`{"keys":"partners","from":[{"cookie":"a="}]}`, "Filter_config.from[0]", `"a=" must be a name of A-Z a-z 0-9 _ - of at most 255 characters`},
			{`{"keys":"partners","from":[{"query":"a)%"}]}`, "Filter_config.from[0]", `"a)%" must be a name of A-Z a-z 0-9 _ - of at most 255 characters`},
			{`{"keys":"partners","from":[{"path":"a"}]}`, "Filter_config", `unknown field "path"`},
			{`{"set":"partners"}`, "Filter_config", `unknown field "set"`},
		},
	}
}
