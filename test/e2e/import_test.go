package e2e_test

import (
	"net/http"

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

// usersLater is the same with another list of operations.
const usersLater = `openapi: 3.1.0
info: {title: Users, version: "2"}
servers: [{url: https://users.example.com/v1}]
paths:
  /users:
    get: {operationId: listUsers, responses: {'200': {description: ok}}}
    post: {operationId: addUser, responses: {'201': {description: ok}}}
`

var _ = Describe("An imported OpenAPI document", func() {
	It("routes its operations, and is followed when it changes", func() {
		g, gw := standalone()
		addUpstream(g.API, backend("blue"))
		c := cliOf(g)
		run := func(text string, more ...string) string {
			GinkgoHelper()
			return c.good(append([]string{"import", "openapi", document(text), "--service", "users", "--upstream", "blue", "-o", "table"}, more...)...)
		}
		Expect(run(usersAPI, "--dry-run")).To(HaveSuffix("7 to create, 0 to update, 0 to delete, 0 unchanged\n"))
		Expect(c.good("get", "services", "-o", "json")).To(MatchJSON(`[]`))
		Expect(run(usersAPI)).To(HaveSuffix("7 created, 0 updated, 0 deleted, 0 unchanged (revision 2)\n"))
		Expect(run(usersAPI)).To(HavePrefix("0 created, 0 updated, 0 deleted, 7 unchanged"))
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

		By("following the document, and leaving what it does not know")
		addRoute(g.API, "users", "hand", "/hand", "", "blue")
		text := run(usersLater)
		Expect(text).To(And(
			ContainSubstring("+ /service/users/route/listUsers\n"), ContainSubstring("- /service/users/route/getPart\n"),
			ContainSubstring("- /service/users/route/getMine\n"), Not(ContainSubstring("hand"))))
		gw.expect("users.example.com", "/v1/users", "blue")
		gw.expect("users.example.com", "/v1/users/7/name", "404")
		gw.expect("users.example.com", "/hand", "blue")
		Expect(run(usersLater)).To(HavePrefix("0 created, 0 updated, 0 deleted, 5 unchanged"))
	})

	It("gives a request to the route with more text", func() {
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
