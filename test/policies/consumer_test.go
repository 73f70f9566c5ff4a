package policies_test

import (
	"net/http"
	"strconv"
)

const annPassword = "correct-horse-battery"

// givenConsumers creates consumers, and a filter on both services that accepts their credentials.
func givenConsumers(w *world) {
	givenKeys(w)
	issuer := tokenIssuer()
	w.post("/filter", "Filter_name=either", "Filter_type=http_filter_anyof", `Filter_config={"apikey":{"keys":"partners"},`+
		`"basicauth":{"users":[{"name":"ann","password":"`+annPassword+`"},{"name":"ben","password":"`+annPassword+`"}]},`+
		`"jwt":{"issuer":"https://issuer.test","audiences":["shop"],"jwks":`+issuer.JWKS()+`}}`)
	w.attach("/service/shop/filter/either", "/service/moved/filter/either")
	for name, fields := range map[string][2]string{
		"acme":      {"gold,beta", `{"keys":["partners/web"],"tokens":[{"issuer":"https://issuer.test","subject":"acme"}]}`},
		"ann":       {"silver", `{"users":["either/ann"],"tokens":[{"issuer":"https://issuer.test","claim":"app.id","value":"a\"\\]]%é"}]}`},
		"suspended": {"gold,suspended", `{"keys":["partners/mobile"]}`},
		"nobody":    {"", `{"keys":["staff/web"]}`},
	} {
		w.post("/consumer", "Consumer_name="+name, "Consumer_groups="+fields[0], "Consumer_credentials="+fields[1])
	}
}

// saysConsumer returns the consumer that the backend receives.
func saysConsumer(a answer) string {
	said := strconv.Itoa(a.status)
	for _, header := range []string{"X-Consumer-Name", "X-Consumer-Groups", "X-Who"} {
		for _, value := range a.seen[header] {
			said += " " + value
		}
	}
	return said
}

func consumer() policy {
	issuer := tokenIssuer()
	token := func(claims object) string {
		claims["aud"] = "shop"
		return "Authorization: Bearer " + issuer.Token(claims)
	}
	const group = `is not a group such as gold, or gold@shop for a team with the tag shop`
	return policy{
		kind: "http_filter_consumer", filter: "envoy.filters.http.rbac/consumer", denies: http.StatusForbidden,
		given: givenConsumers, says: saysConsumer,
		config:  `{}`,
		changed: `{"allow":["gold","bronze"],"deny":["suspended"],"required":false,"name_header":"X-Who"}`,
		requests: []request{
			{what: "a key", header: []string{withKey("partners", "web")}, off: "200", on: "200 acme beta,gold", changed: "200 beta,gold acme", both: "200 beta,gold acme"},
			{what: "no credential", off: "401", on: "401", changed: "401", both: "401"},
			{what: "a key of a denied group", header: []string{withKey("partners", "mobile")}, off: "200", on: "200 suspended gold,suspended", changed: "403", both: "403"},
			{what: "a password of another group", header: []string{basic("ann", annPassword)}, off: "200", on: "200 ann silver", changed: "403", both: "403"},
			{what: "a user of no consumer", header: []string{basic("ben", annPassword)}, off: "200", on: "403", changed: "200", both: "200"},
			{what: "a subject", header: []string{token(object{"sub": "acme"})}, off: "200", on: "200 acme beta,gold", changed: "200 beta,gold acme", both: "200 beta,gold acme"},
			{what: "a claim", header: []string{token(object{"sub": "x", "app": object{"id": `a"\]]%é`}})}, off: "200", on: "200 ann silver", changed: "403", both: "403"},
			{what: "claims of two consumers", header: []string{token(object{"sub": "acme", "app": object{"id": `a"\]]%é`}})}, off: "200", on: "403", changed: "403", both: "403"},
			{what: "a subject of no consumer", header: []string{token(object{"sub": "ann"})}, off: "200", on: "403", changed: "200", both: "200"},
			{what: "a subject that is a list", header: []string{token(object{"sub": "b", "app": []string{"id"}})}, off: "200", on: "403", changed: "200", both: "200"},
			{what: "a subject that goes on", header: []string{token(object{"sub": "acme\x01acme\x01gold\n"})}, off: "200", on: "403", changed: "200", both: "200"},
			{what: "two credentials of one consumer", header: []string{withKey("partners", "web"), token(object{"sub": "acme"})}, off: "200", on: "200 acme beta,gold", changed: "200 beta,gold acme", both: "200 beta,gold acme"},
			{what: "credentials of two consumers", header: []string{withKey("partners", "web"), basic("ann", annPassword)}, off: "200", on: "403", changed: "403", both: "403"},
			{what: "a credential of one consumer, and one of none", header: []string{withKey("partners", "web"), basic("ben", annPassword)}, off: "200", on: "200 acme beta,gold", changed: "200 beta,gold acme", both: "200 beta,gold acme"},
			{what: "a key that is not accepted here", header: []string{withKey("staff", "web")}, off: "401", on: "401", changed: "401", both: "401"},
			{what: "a made-up consumer", header: []string{basic("ben", annPassword), "X-Consumer-Name: acme", "X-Consumer-Groups: gold", "X-Who: acme"}, off: "200 acme gold acme", exempt: "200 acme", exemptChanged: "200", on: "403", changed: "200 acme", both: "200"},
			{what: "a made-up consumer with a key", header: []string{withKey("partners", "web"), "X-Consumer-Name: ann", "X-Consumer-Groups: silver"}, off: "200 ann silver", exempt: "200", exemptChanged: "200 beta,gold acme", on: "200 acme beta,gold", changed: "200 ann beta,gold acme", both: "200 beta,gold acme"},
			{what: "a redirect to HTTPS", host: "moved.test", off: "301", on: "301", changed: "301", both: "301"},
			{what: "a path that no route has", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{"allow":["a,b"]}`, "Filter_config.allow[0]", `"a,b" ` + group},
			{`{"deny":["gold","@shop"]}`, "Filter_config.deny[1]", `"@shop" ` + group},
			{`{"name_header":"X-Client"}`, "Filter_config.name_header", `"x-client" says something else of a client; choose another header`},
			{`{"groups_header":"x-consumer-name"}`, "Filter_config.groups_header", `"x-consumer-name" is named twice`},
			{`{"groups_header":"host"}`, "Filter_config.groups_header", `"host" cannot be changed; the rewrite of Route_config changes path and host`},
			{`{"required":"no"}`, "Filter_config.required", `must be true or false, not a string`},
			{`{"groups":["gold"]}`, "Filter_config", `unknown field "groups"`},
		},
	}
}
