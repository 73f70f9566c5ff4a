package policies_test

import (
	"encoding/base64"
	"net/http"
	"strconv"
)

// basic returns the header with a user name and a password.
func basic(name, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

// saysUser returns the client that the backend receives, whether it receives a password, and a wrong challenge.
func saysUser(a answer) string {
	said := strconv.Itoa(a.status)
	if values := a.seen["X-Client"]; len(values) > 0 {
		said += " from " + values[0]
	}
	if len(a.seen["Authorization"]) > 0 {
		said += " with Authorization"
	}
	if a.status == http.StatusUnauthorized && (a.header.Get("Www-Authenticate") != `Basic realm="gateway", charset="UTF-8"` || a.body != "a valid user name and password are required\n") {
		said += " " + a.header.Get("Www-Authenticate") + " " + a.body
	}
	return said
}

func basicAuth() policy {
	const ann, bob = "correct-horse-battery", "staple: über alles"
	annHeader, bobHeader := basic("ann", ann), basic("bob@example.com", bob)
	encoded := annHeader[len("Authorization: Basic "):]
	const password = "has fewer than 12 characters: Envoy holds its SHA-1, from which a short password is found quickly"
	const all, nobody = "200 with Authorization", "401"
	return policy{
		kind: "http_filter_basicauth", filter: "envoy.filters.http.basic_auth", denies: http.StatusUnauthorized, says: saysUser,
		redacted: "-:{SHA}AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		config:   `{"users":[{"name":"ann","password":"` + ann + `"},{"password":"` + bob + `","name":"bob@example.com"}]}`,
		changed:  `{"users":[{"name":"bob@example.com","password":"` + bob + `"},{"name":"root","password":"` + ann + `"}],"forward":true}`,
		requests: []request{
			{what: "no password", off: "200", on: nobody, changed: nobody, both: nobody},
			{what: "a user", header: []string{annHeader}, off: all, on: "200 from ann", changed: nobody, both: nobody},
			{what: "a user with a colon in the password", header: []string{bobHeader}, off: all, on: "200 from bob@example.com", changed: "200 from bob@example.com with Authorization", both: "200 from bob@example.com with Authorization"},
			{what: "the other one's password", header: []string{basic("bob@example.com", ann)}, off: all, on: nobody, changed: nobody, both: nobody},
			{what: "another user", header: []string{basic("root", ann)}, off: all, on: nobody, changed: "200 from root with Authorization", both: "200 from root with Authorization"},
			{what: "another case of the name", header: []string{basic("Ann", ann)}, off: all, on: nobody, changed: nobody, both: nobody},
			{what: "an empty password", header: []string{basic("ann", "")}, off: all, on: nobody, changed: nobody, both: nobody},
			{what: "nobody", header: []string{basic("-", "")}, off: all, on: nobody, changed: nobody, both: nobody},
			{what: "no name", header: []string{basic("", ann)}, off: all, on: nobody, changed: nobody, both: nobody},
			{what: "without a colon", header: []string{"Authorization: Basic YW5u"}, off: all, on: nobody, changed: nobody, both: nobody},
			{what: "no base64", header: []string{"Authorization: Basic ann:" + ann}, off: all, on: nobody, changed: nobody, both: nobody},
			{what: "another scheme", header: []string{"Authorization: Bearer " + encoded}, off: all, on: nobody, changed: nobody, both: nobody},
			{what: "without a scheme", header: []string{"Authorization: " + encoded}, off: all, on: nobody, changed: nobody, both: nobody},
			{what: "elsewhere", header: []string{"X-Gatehouse-Key: Basic " + encoded, "Proxy-Authorization: Basic " + encoded}, off: "200", on: nobody, changed: nobody, both: nobody},
			{what: "twice", header: []string{annHeader, annHeader}, off: all, on: nobody, changed: nobody, both: nobody},
			{what: "a made-up client", header: []string{"X-Client: root"}, off: "200 from root", exempt: "200", on: nobody, changed: nobody, both: nobody},
			{what: "a made-up client with a password", header: []string{annHeader, "X-Client: root"}, off: "200 from root with Authorization", exempt: "200 with Authorization", on: "200 from ann", changed: nobody, both: nobody},
			{what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200", on: nobody, changed: nobody, both: nobody},
			{what: "a route without upstreams", path: "/empty", off: "503", on: nobody, changed: nobody, both: nobody},
			{what: "a redirect to HTTPS", host: "moved.test", off: "301", on: "301", changed: "301", both: "301"},
			{what: "a path that no route has", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
			{what: "a host that no service has", host: "else.test", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.users", "is empty, so no request would be allowed; give each user a name and a password"},
			{`{"users":[{"name":"a:b","password":"` + ann + `"}]}`, "Filter_config.users[0].name", `"a:b" is not a user name of 1 to 128 characters of A-Z a-z 0-9 . _ @ + -`},
			{`{"users":[{"name":"#ann","password":"` + ann + `"}]}`, "Filter_config.users[0].name", `"#ann" is not a user name of 1 to 128 characters of A-Z a-z 0-9 . _ @ + -`},
			{`{"users":[{"name":"a/b","password":"` + ann + `"}]}`, "Filter_config.users[0].name", `"a/b" is not a user name of 1 to 128 characters of A-Z a-z 0-9 . _ @ + -`},
			{`{"users":[{"password":"` + ann + `"}]}`, "Filter_config.users[0].name", `"" is not a user name of 1 to 128 characters of A-Z a-z 0-9 . _ @ + -`},
			{`{"users":[{"name":"ann","password":"` + ann + `"},{"name":"ann","password":"` + bob + `"}]}`, "Filter_config.users[1].name", `"ann" is listed twice`},
			{`{"users":[{"name":"ann"}]}`, "Filter_config.users[0].password", "is required"},
			{`{"users":[{"name":"ann","password":"eleven-char"}]}`, "Filter_config.users[0].password", password},
			{`{"users":[{"name":"ann","password":"üüüüüüüüüüü"}]}`, "Filter_config.users[0].password", password},
			{`{"users":[{"name":"ann","password":"correct-horse\n"}]}`, "Filter_config.users[0].password", "begins or ends with a space, or has a control character, such as the line feed at the end of a file"},
			{`{"users":[{"name":"ann","Password":"` + ann + `"}]}`, "Filter_config.users[0].Password", "unknown field; write it password"},
			{`{"users":[{"name":"ann","password":"<redacted>"}]}`, "Filter_config.users[ann].password", "is <redacted>, but no value is stored that it could stand for; write the secret itself, or apply what GET /config?secrets=sealed returns"},
			{`{"users":[{"name":"ann","password":{"secret":""}}]}`, "Filter_config", `password must be a string, or {"secret": NAME} with the name of a secret`},
			{`{"users":[{"name":"ann","hash":"{SHA}x"}]}`, "Filter_config", `unknown field "hash"`},
		},
	}
}
