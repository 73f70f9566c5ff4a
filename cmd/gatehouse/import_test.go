package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const pets = `openapi: 3.0.3
info: {title: Pets, version: '1'}
servers: [{url: https://pets.example.com}]
paths:
  /pets:
    get: {operationId: listPets, responses: {'200': {description: ok}}}
    post: {operationId: addPet, x-internal: true, responses: {'200': {description: ok}}}
`

const petsDocument = `
version: 1
services:
- service_name: shop
  fqdn: pets.example.com
  routes:
  - {route_name: listPets, route_prefix: /pets, route_config: {match: exact, methods: [GET, HEAD]}, tags: ["import:openapi"], upstreams: [blue]}
  - {route_name: preflight, route_prefix: /, route_config: {match: prefix, methods: [OPTIONS]}, tags: ["import:openapi"], upstreams: [blue]}
`

// importing answers as a server with the upstream blue and more answers.
func importing(more map[string]reply) *fake {
	f := &fake{answers: map[string]reply{
		"GET /upstream/blue": {200, `{"data":{"core_db_upstream":[{"upstream_name":"blue"}]}}`, nil},
		"PUT /config": {200, `{"data":{"created":2,"updated":0,"deleted":0,"unchanged":0,"changes":[{"action":"create","path":"/service/shop","kind":"service","fields":[]}],"warnings":[]}}`,
			map[string]string{"Gatehouse-Revision": "8"}},
		"PUT /config?dry_run=true": {200, `{"data":{"dry_run":true,"created":0,"updated":0,"deleted":0,"unchanged":3,"changes":[],"warnings":[]}}`, nil},
	}}
	for k, v := range more {
		f.answers[k] = v
	}
	f.serve()
	return f
}

var _ = Describe("import openapi", func() {
	args := func(more ...string) []string {
		return append([]string{"import", "openapi", "-", "--service", "shop", "--upstream", "blue"}, more...)
	}

	It("creates a service, and reports what it left out", func() {
		f := importing(nil)
		Expect(run1(pets, args("-o", "table")...)).To(Equal(result{0, "+ /service/shop\n2 created, 0 updated, 0 deleted, 0 unchanged (revision 8)\n",
			"warning: POST /pets is left out, because the document marks it with x-internal\n"}))
		Expect(f.calls).To(Equal([]string{"GET /upstream/blue", "GET /service/shop", "PUT /config"}))
		Expect(f.bodies[2]).To(MatchYAML(petsDocument))
	})

	gone := map[string]reply{
		"GET /service/shop":                  {200, `{"data":{"core_db_service":[{"service_name":"shop","fqdn":"pets.example.com","tags":[]}]}}`, nil},
		"GET /service/shop/route?limit=1000": {200, `{"data":{"core_db_route":[{"route_name":"old","tags":["import:openapi"]},{"route_name":"hand","tags":[]}]}}`, nil},
		"DELETE /service/shop/route/old?dry_run=true": {200, `{"data":{"dry_run":true,"changes":[
			{"action":"delete","path":"/service/shop/route/old/upstream/blue","kind":"route_upstream","fields":[]},{"action":"delete","path":"/service/shop/route/old","kind":"route","fields":[]}]}}`, nil},
		"DELETE /service/shop/route/old": {200, `{"data":{}}`, map[string]string{"Gatehouse-Revision": "9"}},
	}

	It("deletes last what is no longer in the document", func() {
		f := importing(gone)
		Expect(run1(pets, args("-o", "table")...).stdout).To(Equal("+ /service/shop\n- /service/shop/route/old/upstream/blue\n- /service/shop/route/old\n" +
			"2 created, 0 updated, 2 deleted, 0 unchanged (revision 9)\n"))
		Expect(f.calls).To(Equal([]string{
			"GET /upstream/blue", "GET /service/shop", "GET /service/shop/route?limit=1000",
			"DELETE /service/shop/route/old?dry_run=true", "PUT /config", "DELETE /service/shop/route/old",
		}))
		Expect(f.bodies[4]).To(MatchYAML(petsDocument))
	})

	It("changes nothing in a dry run", func() {
		f := importing(gone)
		Expect(run1(pets, args("--dry-run", "-o", "table")...).stdout).To(Equal("- /service/shop/route/old/upstream/blue\n- /service/shop/route/old\n" +
			"0 to create, 0 to update, 2 to delete, 3 unchanged\n"))
		Expect(f.calls).To(HaveLen(5))
		Expect(f.calls).NotTo(ContainElement(HaveSuffix("/old")))
	})

	It("prints JSON in a pipe", func() {
		importing(nil)
		Expect(run1(pets, args("--dry-run")...).stdout).To(MatchJSON(`{"created":0,"updated":0,"deleted":0,"unchanged":3,"changes":[],"dry_run":true,
			"warnings":["POST /pets is left out, because the document marks it with x-internal"]}`))
	})

	It("reports if only part of it was done", func() {
		more := map[string]reply{}
		for k, v := range gone {
			more[k] = v
		}
		more["DELETE /service/shop/route/old"] = reply{503, `{"detail":"the database is away","code":"unavailable"}`, nil}
		importing(more)
		r := run1(pets, args()...)
		Expect(r.code).To(Equal(1))
		Expect(r.stderr).To(HavePrefix("gatehouse: the routes of the document are in place, but some that it no longer has were not deleted; import it again: DELETE /service/shop/route/old: the database is away (503 unavailable)\n"))
	})

	It("requires the upstream, a valid document and its flags", func() {
		f := importing(nil)
		Expect(run1(pets, "import", "openapi", "-", "--service", "shop", "--upstream", "red")).To(Equal(result{1, "",
			"gatehouse: upstream \"red\" does not exist; create it first (gatehouse get upstreams lists the upstreams)\n"}))
		Expect(f.calls).To(Equal([]string{"GET /upstream/red"}))
		Expect(run1("openapi: 3.0.3\npaths:\n  x: {}\n", args()...)).To(Equal(result{1, "",
			"gatehouse: reading -: the document has errors; nothing was changed\n" +
				"  line 1: invalid info: must be an object\n  line 3: invalid paths: path \"x\" does not start with a forward slash (/)\nWith --lenient the rest is imported.\n"}))
		Expect(run1("", "import", "openapi", "/not/there", "--service", "shop", "--upstream", "blue")).To(Equal(result{1, "",
			"gatehouse: reading the OpenAPI document: open /not/there: no such file or directory\n"}))
		Expect(run1(pets, "import", "openapi", "-").code).To(Equal(2))
		Expect(run1(pets, args("--proxy", "gw")...)).To(Equal(result{1, "",
			"gatehouse: proxy \"gw\" does not exist; create it first (gatehouse get proxies lists the proxies)\n"}))
		Expect(f.calls).To(HaveLen(2))
	})
})
