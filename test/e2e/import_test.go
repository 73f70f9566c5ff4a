package e2e_test

import (
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const usersAPI = `openapi: 3.1.0
info: {title: Users, version: "1"}
servers: [{url: https://users.example.com/v1}]
paths:
  /users/{id}/{part}:
    parameters:
    - {name: id, in: path, required: true, schema: {type: string}}
    - {name: part, in: path, required: true, schema: {type: string}}
    get: {operationId: getPart, responses: {'200': {description: ok}}}
  /users/me/{part}:
    parameters: [{name: part, in: path, required: true, schema: {type: string}}]
    get: {operationId: getMine, responses: {'200': {description: ok}}}
  /users:
    post: {operationId: addUser, responses: {'201': {description: ok}}}
`

// usersLater is a later version with another list of operations.
const usersLater = `openapi: 3.1.0
info: {title: Users, version: "2"}
servers: [{url: https://users.example.com/v1}]
paths:
  /users:
    get: {operationId: listUsers, responses: {'200': {description: ok}}}
    post: {operationId: addUser, responses: {'201': {description: ok}}}
`

// attestationsAPI has two paths that differ only in the name of a parameter, as
// GitHub's own document has, and two that really are the same.
const attestationsAPI = `{"openapi": "3.0.3",
"info": {"title": "Attestations", "version": "1"},
"servers": [{"url": "http://127.0.0.1:PORT/v1"}],
"paths": {
  "/orgs/{org}/attestations/{digest}": {
    "parameters": [{"name": "org", "in": "path", "required": true, "schema": {"type": "string"}},
      {"name": "digest", "in": "path", "required": true, "schema": {"type": "string"}}],
    "get": {"operationId": "listAttestations", "responses": {"200": {"description": "ok"}}}
  },
  "/orgs/{org}/attestations/{id}": {
    "parameters": [{"name": "org", "in": "path", "required": true, "schema": {"type": "string"}},
      {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
    "delete": {"operationId": "removeAttestation", "responses": {"200": {"description": "ok"}}}
  },
  "/files/{name}": {
    "get": {"operationId": "file", "parameters": [{"name": "name", "in": "path", "required": true, "schema": {"type": "string"}}], "responses": {"200": {"description": "ok"}}}
  },
  "/files/{path}": {
    "get": {"operationId": "fileAgain", "parameters": [{"name": "path", "in": "path", "required": true, "schema": {"type": "string"}}], "responses": {"200": {"description": "ok"}}}
  }
}}
`

var _ = Describe("An imported OpenAPI document", func() {
	It("routes its operations, and can be imported again when it changes", func() {
		g, gw := standalone()
		addUpstream(g.API, backend("blue"))
		c := cliOf(g)
		run := func(text string, more ...string) string {
			GinkgoHelper()
			return c.good(append([]string{"import", "openapi", document(text), "--service", "users", "--upstream", "blue", "-o", "table"}, more...)...)
		}
		Expect(run(usersAPI, "--dry-run")).To(HaveSuffix("9 to create, 0 to update, 0 to delete, 0 unchanged\n"))
		Expect(c.good("get", "services", "-o", "json")).To(MatchJSON(`[]`))
		Expect(run(usersAPI)).To(HaveSuffix("9 created, 0 updated, 0 deleted, 0 unchanged (revision 2)\n"))
		Expect(run(usersAPI)).To(HavePrefix("0 created, 0 updated, 0 deleted, 9 unchanged"))
		addProxy(g.API, "gw", gw.port, "users")

		gw.expect("users.example.com", "/v1/users/7/name?x=1", "blue")
		for path, want := range map[string]string{
			"/v1/users/a%20b/c.d": "blue", "/v1/users/me/name": "blue", "/v1/users/7": "404", "/v1/users/7/name/x": "404",
			"/v1/users": "404", "/users/7/name": "404",
		} {
			Expect(gw.answers("users.example.com", path)).To(Equal(want), path)
		}
		for method, want := range map[string]int{http.MethodPost: 200, http.MethodPut: 404} {
			r, err := gw.send(method, "users.example.com", "/v1/users")
			Expect(err).NotTo(HaveOccurred())
			Expect(r.Status).To(Equal(want), method)
		}

		By("following the document, and keeping what it does not mention")
		addRoute(g.API, "users", "hand", "/hand", "", "blue")
		text := run(usersLater)
		Expect(text).To(And(
			ContainSubstring("+ /service/users/route/listUsers\n"), ContainSubstring("- /service/users/route/getPart\n"),
			ContainSubstring("- /service/users/route/getMine\n"), Not(ContainSubstring("hand"))))
		gw.expect("users.example.com", "/v1/users", "blue")
		gw.expect("users.example.com", "/v1/users/7/name", "404")
		gw.expect("users.example.com", "/hand", "blue")
		Expect(run(usersLater)).To(HavePrefix("0 created, 0 updated, 0 deleted, 7 unchanged"))
	})

	It("uses its server, on a proxy, with CORS preflights, and is imported except for what is impossible", func() {
		g, gw := standalone()
		c, blue := cliOf(g), backend("blue")
		post(g.API, "/proxy", "Name=gw", "Http_port="+strconv.Itoa(gw.port))
		text := strings.ReplaceAll(attestationsAPI, "PORT", strconv.Itoa(blue.Port))
		args := []string{"import", "openapi", document(text), "--service", "api", "--fqdn", "api.test", "--proxy", "gw", "-o", "table"}

		code, stdout, stderr := c.run(args...)
		Expect([]any{code, stdout}).To(Equal([]any{1, ""}))
		Expect(stderr).To(HaveSuffix("the document has an error; nothing was changed\n" +
			"  line 19: GET /files/{path}: takes the same requests as GET /files/{name}\nWith --lenient the rest is imported.\n"))

		args = append(args, "--lenient")
		code, stdout, stderr = c.run(append(args, "--dry-run")...)
		Expect([]any{code, stderr}).To(Equal([]any{0, "warning: left out: line 19: GET /files/{path}: takes the same requests as GET /files/{name}\n"}))
		Expect(stdout).To(HaveSuffix("+ /proxy/gw/service/api\n11 to create, 0 to update, 0 to delete, 0 unchanged\n"))
		Expect(c.good("get", "services", "-o", "json")).To(MatchJSON(`[]`))
		Expect(c.good(args...)).To(ContainSubstring("\n11 created, 0 updated, 0 deleted, 0 unchanged (revision "))
		Expect(c.good(args...)).To(HavePrefix("0 created, 0 updated, 0 deleted, 9 unchanged"))

		gw.expect("api.test", "/v1/orgs/o/attestations/sha256:1", "blue")
		for request, want := range map[string]int{
			"DELETE /v1/orgs/o/attestations/1": 200, "PUT /v1/orgs/o/attestations/1": 404,
			"GET /v1/files/a": 200, "OPTIONS /v1/orgs/o/attestations/1": 200, "OPTIONS /other": 404,
		} {
			method, path, _ := strings.Cut(request, " ")
			r, err := gw.send(method, "api.test", path)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.Status).To(Equal(want), request)
		}
		Expect(c.good("get", "upstreams", "-o", "json")).To(ContainSubstring(`"upstream_ip": "127.0.0.1"`))
		Expect(c.good("get", "route", "api/removeAttestation", "-o", "json")).To(ContainSubstring(`"host": "127.0.0.1:` + strconv.Itoa(blue.Port) + `"`))
	})

	It("sends a request to the route with more fixed text", func() {
		g, gw := standalone()
		addUpstream(g.API, backend("blue"))
		addUpstream(g.API, backend("green"))
		c := cliOf(g)
		c.good("import", "openapi", document(usersAPI), "--service", "users", "--upstream", "blue", "--fqdn", "*")
		remove(g.API, "/service/users/route/getMine/upstream/blue")
		post(g.API, "/service/users/route/getMine/upstream/green")
		addProxy(g.API, "gw", gw.port, "users")
		gw.expect("any.example", "/v1/users/me/name", "green")
		gw.expect("any.example", "/v1/users/7/name", "blue")
	})
})
