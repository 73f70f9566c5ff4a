package importer_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/importer"
)

const petstore = `openapi: 3.1.0
info: {title: Pets, version: "1"}
servers:
- url: https://{region}.Example.com:8443/v1/
  variables: {region: {default: eu}}
- url: https://elsewhere.example.com
paths:
  /pets:
    get: {operationId: listPets, responses: {'200': {description: ok}}}
    post: {operationId: "create pet", responses: {'201': {description: ok}}}
    head: {responses: {'200': {description: ok}}}
  /pets/{petId}.json:
    parameters: [{name: petId, in: path, required: true, schema: {type: [string, "null"]}}]
    get: {deprecated: true, responses: {'200': {description: ok}}}
    delete: {x-internal: true, responses: {'204': {description: ok}}}
webhooks:
  newPet:
    post: {responses: {'200': {description: ok}}}
`

const petstoreDocument = `version: 1
services:
- service_name: api
  fqdn: eu.example.com
  routes:
  - route_name: listPets
    route_prefix: /v1/pets
    route_config:
      match: exact
      methods:
      - GET
    tags:
    - import:openapi
    upstreams:
    - blue
  - route_name: head.pets
    route_prefix: /v1/pets
    route_config:
      match: exact
      methods:
      - HEAD
    tags:
    - import:openapi
    upstreams:
    - blue
  - route_name: create-pet
    route_prefix: /v1/pets
    route_config:
      match: exact
      methods:
      - POST
    tags:
    - import:openapi
    upstreams:
    - blue
  - route_name: get.pets._petId_.json
    route_prefix: /v1/pets/[^/]+\.json
    route_config:
      match: regex
      methods:
      - GET
      - HEAD
    tags:
    - import:openapi
    upstreams:
    - blue
`

var _ = Describe("An import", func() {
	It("creates a service with a route for each operation", func() {
		p := planOf(petstore, importer.Stored{})
		Expect(string(p.Document)).To(Equal(petstoreDocument))
		Expect(p.Gone).To(BeEmpty())
		Expect(p.Warnings).To(Equal([]string{"DELETE /pets/{petId}.json is left out, because the document marks it with x-internal"}))
	})

	It("reads JSON", func() {
		text := `{"openapi":"3.0.0","info":{"title":"\ud83d\ude00","version":"1"},"servers":[{"url":"http://a.example"}],
			"paths":{"/x":{"get":{"responses":{"200":{"description":"ok"}}}}}}`
		Expect(planOf(text, importer.Stored{}).Document).To(MatchYAML(`
version: 1
services:
- service_name: api
  fqdn: a.example
  routes:
  - {route_name: get.x, route_prefix: /x, route_config: {match: exact, methods: [GET, HEAD]}, tags: ["import:openapi"], upstreams: [blue]}
`))
	})

	It("keeps settings that the document does not mention, and finds removed routes", func() {
		p := planOf(withPaths("  /a: {get: {operationId: a, "+ok+"}}\n"), importer.Stored{
			Service: raw(`{"service_id":3,"service_name":"api","fqdn":"mine.example","tags":["team"],"create_ts":"2026-11-21T15:01:54.615962+00:00"}`)[0],
			Routes: raw(
				`{"route_name":"a","route_prefix":"/old","route_config":{"methods":["PUT"],"timeouts":{"request":"2s"}},"tags":["import:openapi","x"]}`,
				`{"route_name":"z","route_prefix":"/z","route_config":{},"tags":["import:openapi"]}`,
				`{"route_name":"c","route_prefix":"/c","route_config":{},"tags":["import:openapi"]}`,
				`{"route_name":"hand","route_prefix":"/hand","route_config":{},"tags":[]}`,
			),
		})
		Expect(p.Document).To(MatchYAML(`
version: 1
services:
- service_name: api
  fqdn: mine.example
  tags: [team]
  routes:
  - {route_name: a, route_prefix: /a, route_config: {match: exact, methods: [GET, HEAD], timeouts: {request: 2s}}, tags: ["import:openapi", x], upstreams: [blue]}
`))
		Expect(p.Gone).To(Equal([]string{"c", "z"}))
	})

	It("does not touch a route that no import created", func() {
		_, err := plan(withPaths("  /a: {get: {operationId: a, "+ok+"}}\n"), importer.Stored{
			Service: raw(`{"service_name":"api","fqdn":"mine.example"}`)[0],
			Routes:  raw(`{"route_name":"a","route_prefix":"/a","route_config":{},"tags":[]}`),
		})
		Expect(err).To(MatchError("the document has an error; nothing was changed\n" +
			`  line 5: GET /a: the service has a route "a" that no import made; delete it, or give it the tag import:openapi to have it replaced`))
	})

	It("uses the specified host", func() {
		doc, err := importer.Read(context.Background(), []byte(petstore), false)
		Expect(err).NotTo(HaveOccurred())
		o := importer.Options{Service: "api", FQDN: "*", Upstreams: []string{"blue", "green"}}
		p, err := importer.Import(doc, o, importer.Stored{Service: raw(`{"service_name":"api","fqdn":"mine.example"}`)[0]})
		Expect(err).NotTo(HaveOccurred())
		Expect(string(p.Document)).To(And(ContainSubstring("fqdn: '*'"), ContainSubstring("    upstreams:\n    - blue\n    - green\n")))

		o.FQDN = "no host"
		_, err = importer.Import(doc, o, importer.Stored{})
		Expect(err).To(MatchError(HavePrefix("the service cannot be created\n  fqdn: \"no host\" is not a host name")))
	})

	DescribeTable("converts a path", func(path, want string) {
		p := planOf(withPaths("  '"+path+"': {parameters: [{name: id, in: path, required: true, schema: {type: string}}, {name: n, in: path, required: true, schema: {type: string}}], get: {"+ok+"}}\n"), importer.Stored{})
		Expect(string(p.Document)).To(ContainSubstring(want))
	},
		Entry("parameters in one segment", "/a/{id}-{n}", "route_prefix: /a/[^/]+-[^/]+\n"),
		Entry("special characters of an expression", "/a.b+c/{id}/{n}(x)", `route_prefix: /a\.b\+c/[^/]+/[^/]+\(x\)`+"\n"),
		Entry("a trailing slash", "/{id}/{n}/", "route_prefix: /[^/]+/[^/]+/\n"),
		Entry("characters that a URL encodes", "/é x/%20/{id}{n}", "route_prefix: /%C3%A9%20x/%20/[^/]+[^/]+\n"),
		Entry("the name of its route", "/{id}/ü/{n}", "route_name: get._id_.-._n_\n"),
	)

	DescribeTable("puts the base path before", func(servers, path string, want string) {
		text := "openapi: 3.0.3\ninfo: {title: t, version: '1'}\n" + servers + "\npaths:\n" + path
		p, err := plan(text, importer.Stored{Service: raw(`{"service_name":"api","fqdn":"mine.example"}`)[0]})
		if err != nil {
			Expect(err).To(MatchError(want))
			return
		}
		Expect(string(p.Document)).To(ContainSubstring("route_prefix: " + want + "\n"))
	},
		Entry("for no server", "", "  /a: {get: {"+ok+"}}", "/a"),
		Entry("for a relative server", "servers: [{url: /v2}]", "  /a: {get: {"+ok+"}}", "/v2/a"),
		Entry("for a server of the path", "servers: [{url: /v2}]", "  /a: {servers: [{url: /v3}], get: {"+ok+"}}", "/v3/a"),
		Entry("for a server of the operation", "servers: [{url: /v2}]", "  /a: {servers: [{url: /v3}], get: {servers: [{url: 'http://x/v4/'}], "+ok+"}}", "/v4/a"),
		Entry("for the root", "servers: [{url: /v2/}]", "  /: {get: {"+ok+"}}", "/v2/"),
		Entry("for a relative path without a slash", "servers: [{url: v2}]", "  /a: {get: {"+ok+"}}",
			"the document has an error; nothing was changed\n  line 5: GET /a: \"v2\" is relative to where the document is published; write its path from the root, or the whole address"),
	)

	It("prefers the path with more fixed text", func() {
		p := planOf(withPaths(`
  /users/me/{x}: {parameters: [{name: x, in: path, required: true, schema: {type: string}}], get: {operationId: me, `+ok+`}}
  /users/{id}/{x}: {parameters: [{name: id, in: path, required: true, schema: {type: string}}, {name: x, in: path, required: true, schema: {type: string}}], get: {operationId: any, `+ok+`}}
  /users/{id}/settings: {parameters: [{name: id, in: path, required: true, schema: {type: string}}], get: {operationId: settings, `+ok+`}}
  /u/{id}: {parameters: [{name: id, in: path, required: true, schema: {type: string}}], get: {operationId: alone, `+ok+`}}
`), importer.Stored{})
		text := string(p.Document)
		for _, want := range []string{"/users/me/[^/]+(?:)\n", "/users/[^/]+/[^/]+\n", "/users/[^/]+/settings\n", "/u/[^/]+\n"} {
			Expect(text).To(ContainSubstring("route_prefix: " + want))
		}
	})

	It("gives names that do not depend on the order", func() {
		one, two := "  /a/b: {get: {"+ok+"}}\n", "  /a.b: {get: {"+ok+"}}\n"
		first := planOf(withPaths(one+two), importer.Stored{}).Document
		Expect(planOf(withPaths(two+one), importer.Stored{}).Document).To(Equal(first))
		Expect(string(first)).To(And(MatchRegexp(`route_name: get\.a\.b-[0-9a-f]{8}\n.*/a\.b\n`), MatchRegexp(`route_name: get\.a\.b-[0-9a-f]{8}\n.*/a/b\n`)))

		long := strings.Repeat("x", 300)
		Expect(string(planOf(withPaths("  /a: {get: {operationId: "+long+", "+ok+"}}\n"), importer.Stored{}).Document)).
			To(MatchRegexp(`route_name: x{244}-[0-9a-f]{8}\n`))
		Expect(string(planOf(withPaths("  /a: {get: {operationId: a b, "+ok+"}, put: {operationId: a-b, "+ok+"}}\n"), importer.Stored{}).Document)).
			To(And(MatchRegexp(`route_name: a-b-[0-9a-f]{8}\n`), ContainSubstring("route_name: a-b\n")))
	})
})

var _ = Describe("A route for OPTIONS", func() {
	options := importer.Options{Service: "api", Upstreams: []string{"blue"}}

	It("is created for each base path, in addition to the document's own OPTIONS", func() {
		p, err := planWith(withPaths("  /a: {get: {"+ok+"}, options: {"+ok+"}}\n  /b: {servers: [{url: /v2}], get: {operationId: preflight, "+ok+"}}\n"), false, options, importer.Stored{})
		Expect(err).NotTo(HaveOccurred())
		text := string(p.Document)
		Expect(strings.Count(text, "- OPTIONS")).To(Equal(3))
		Expect(text).To(And(
			MatchRegexp(`route_name: preflight-[0-9a-f]{8}\n +route_prefix: /\n +route_config:\n +match: prefix\n +methods:\n +- OPTIONS\n`),
			MatchRegexp(`route_name: preflight-[0-9a-f]{8}\n +route_prefix: /v2/\n`),
			MatchRegexp(`route_name: preflight-[0-9a-f]{8}\n +route_prefix: /v2/b\n`)))
	})
})

var _ = Describe("An import without an upstream", func() {
	const paths = "paths: {/a: {get: {" + ok + "}}}\n"
	load := func(server string, o importer.Options) (importer.Plan, error) {
		o.Service, o.NoPreflight = "api", true
		return planWith("openapi: 3.0.3\ninfo: {title: t, version: '1'}\nservers: ["+server+"]\n"+paths, false, o, importer.Stored{})
	}

	It("creates one from the first server", func() {
		p, err := load("{url: 'https://API.example.com/v1'}", importer.Options{MakeUpstream: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(string(p.Document)).To(MatchRegexp(`(?s)upstreams:\n- upstream_name: api\n  upstream_ip: api.example.com\n  upstream_port: 443\n.*upstream_protocol: tls\n.*    upstreams:\n    - api\n`))
		Expect(string(p.Document)).NotTo(ContainSubstring("rewrite"))
		Expect(p.Warnings).To(Equal([]string{"service and upstream are both api.example.com: where clients reach this gateway by that name, " +
			"give the address of the upstream instead (--upstream)"}))
	})

	It("rewrites the host to what the upstream expects, and uses an existing upstream", func() {
		p, err := load("{url: 'http://api.example.com:8080'}", importer.Options{FQDN: "shop.test"})
		Expect(err).NotTo(HaveOccurred())
		Expect(string(p.Document)).To(And(Not(ContainSubstring("upstream_name")), ContainSubstring("      rewrite:\n        host: api.example.com:8080\n")))
		Expect(p.Warnings).To(BeEmpty())
	})

	DescribeTable("needs a usable server", func(server, want string) {
		_, err := load(server, importer.Options{FQDN: "*", MakeUpstream: true})
		Expect(err).To(MatchError(want))
	},
		Entry("relative", "{url: /v1}", "the document's servers name no host: name the upstream with --upstream"),
		Entry("none", "", "the document's servers name no host: name the upstream with --upstream"),
		Entry("not HTTP", "{url: 'ftp://a.example'}", "the document has an error; nothing was changed\n"+
			`  servers[0].url: "ftp://a.example" is neither http nor https; name the upstream with --upstream`),
		Entry("an invalid port", "{url: 'http://a.example:99999'}", "the upstream cannot be created from the document's first server; name the upstream with --upstream\n"+
			"  Upstream_port: 99999 is not between 1 and 65535"),
	)
})

var _ = Describe("A lenient import", func() {
	It("leaves out what cannot be imported, and lists it", func() {
		text := withPaths(`
  /a/{x}: {parameters: [{name: x, in: path, required: true, schema: {type: string}}], get: {operationId: twice, ` + ok + `}}
  /a/{y}: {parameters: [{name: y, in: path, required: true, schema: {type: string}}], get: {` + ok + `}, put: {operationId: twice, ` + ok + `}}
  /b?x: {get: {` + ok + `}}
  /c: {get: {}}
  d: {get: {` + ok + `}}
  /hand: {get: {operationId: hand, ` + ok + `}}
`)
		stored := importer.Stored{
			Service: raw(`{"service_name":"api","fqdn":"mine.example"}`)[0],
			Routes:  raw(`{"route_name":"hand","route_prefix":"/hand","route_config":{},"tags":[]}`),
		}
		o := importer.Options{Service: "api", Upstreams: []string{"blue"}, NoPreflight: true}
		p, err := planWith(text, true, o, stored)
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Warnings).To(Equal([]string{
			`line 7: invalid paths: operations "GET /a/{x}" and "PUT /a/{y}" have the same operation id "twice"`,
			`line 9: invalid paths: invalid path /c: invalid operation GET: value of responses must be an object`,
			`line 10: invalid paths: path "d" does not start with a forward slash (/)`,
			"left out: line 7: GET /a/{y}: takes the same requests as GET /a/{x}",
			"left out: line 8: GET /b?x: a path has no query (?) and no fragment (#)",
			"left out: line 10: GET d: a path begins with /",
			`left out: line 11: GET /hand: the service has a route "hand" that no import made; delete it, or give it the tag import:openapi to have it replaced`,
		}))
		names := regexp.MustCompile(`route_name: (\S+)`).FindAllStringSubmatch(string(p.Document), -1)
		Expect(names).To(HaveLen(3))
		Expect(names[0][1]).To(MatchRegexp(`^twice-[0-9a-f]{8}$`))
		Expect(names[1][1]).To(And(MatchRegexp(`^twice-[0-9a-f]{8}$`), Not(Equal(names[0][1]))))
		Expect(names[2][1]).To(Equal("get.c"))
	})

	It("must import something", func() {
		_, err := planWith(withPaths("  /b?x: {get: {"+ok+"}}\n"), true, importer.Options{Service: "api", Upstreams: []string{"blue"}}, importer.Stored{})
		Expect(err).To(MatchError("the document describes no operation that could become a route; see its paths"))
	})

	It("is not needed for two paths with different methods", func() {
		text := withPaths("  '/a/{x}': {parameters: [{name: x, in: path, required: true, schema: {type: string}}], get: {" + ok + "}}\n" +
			"  '/a/{y}': {parameters: [{name: y, in: path, required: true, schema: {type: string}}], delete: {" + ok + "}}\n")
		p := planOf(text, importer.Stored{})
		Expect(p.Warnings).To(BeEmpty())
		Expect(strings.Count(string(p.Document), "route_prefix: /a/[^/]+\n")).To(Equal(2))
	})

	It("reports line numbers in JSON", func() {
		_, err := plan("{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"t\",\"version\":\"1\"},\"servers\":[{\"url\":\"http://a.example\"}],\n\"paths\":{\n\"/a?\":{\"get\":{\"responses\":{\"200\":{\"description\":\"\"}}}}}}", importer.Stored{})
		Expect(err).To(MatchError("the document has an error; nothing was changed\n  line 3: GET /a?: a path has no query (?) and no fragment (#)"))
	})
})

var _ = Describe("A document that cannot be imported", func() {
	DescribeTable("reports why", func(text, want string) {
		_, err := plan(text, importer.Stored{})
		Expect(err).To(MatchError(want))
	},
		Entry("Swagger 2", "swagger: '2.0'\ninfo: {title: t, version: '1'}\npaths: {}\n", "the document is Swagger 2.0; convert it to OpenAPI 3 first"),
		Entry("another document", "version: 1\n", `the document says openapi: ""; this program reads OpenAPI 3, such as openapi: "3.1.0"`),
		Entry("not YAML", "a: [\n", "the document cannot be read: line 1: did not find expected node content"),
		Entry("no host", "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths: {/a: {get: {"+ok+"}}}\n",
			"the document's servers name no host: name the host of the service with --fqdn, such as --fqdn api.example.com, or --fqdn '*' for any"),
		Entry("no operations", withPaths("  {}\n"), "the document describes no operation that could become a route; see its paths"),
		Entry("references to other files", withPaths("  /a: {$ref: 'http://127.0.0.1:1/x.yaml'}\n"),
			`the document cannot be read: encountered disallowed external reference: "http://127.0.0.1:1/x.yaml"; references to other files and servers are not followed: bundle the document into one file first`),
		Entry("all errors, with their lines", withPaths(`
  /a:
    get:
      operationId: twice
  /b/{id}:
    get:
      operationId: twice
      responses: {'200': {}}
  c:
    get: {}
`),
			"the document has errors; nothing was changed\n"+
				"  line 7: invalid paths: invalid path /a: invalid operation GET: value of responses must be an object\n"+
				"  line 9: invalid paths: operation GET /b/{id} must define exactly all path parameters (missing: [id])\n"+
				"  line 10: invalid paths: operations \"GET /a\" and \"GET /b/{id}\" have the same operation id \"twice\"\n"+
				"  line 12: invalid paths: invalid path /b/{id}: invalid operation GET: a short description of the response is required\n"+
				"  line 13: invalid paths: path \"c\" does not start with a forward slash (/)"),
		Entry("line numbers in JSON", "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"t\",\"version\":\"1\"},\n\"paths\":{\n\"/a\":{\"get\":{}}}}",
			"the document has an error; nothing was changed\n"+
				"  line 3: invalid paths: invalid path /a: invalid operation GET: value of responses must be an object"),
		Entry("equal paths", withPaths("  '/a/{x}': {parameters: [{name: x, in: path, required: true, schema: {type: string}}], get: {"+ok+"}}\n"+
			"  '/a/{y}': {parameters: [{name: y, in: path, required: true, schema: {type: string}}], get: {"+ok+"}}\n"),
			"the document has an error; nothing was changed\n"+
				"  line 6: GET /a/{y}: takes the same requests as GET /a/{x}"),
		Entry("paths that become equal", withPaths("  /v1/a: {servers: [{url: /}], get: {"+ok+"}}\n  /a: {servers: [{url: /v1}], get: {"+ok+"}}\n"),
			"the document has an error; nothing was changed\n"+
				"  line 5: GET /v1/a: takes the same requests as GET /a"),
		Entry("a path that no route can have", withPaths("  /a?x=1: {get: {"+ok+"}}\n  /{a: {get: {"+ok+"}}\n  /a}: {get: {"+ok+"}}\n  /"+strings.Repeat(".", 600)+"/{p}: {parameters: [{name: p, in: path, required: true, schema: {type: string}}], get: {"+ok+"}}\n"),
			"the document has errors; nothing was changed\n"+
				"  line 5: GET /a?x=1: a path has no query (?) and no fragment (#)\n"+
				"  line 6: GET /{a: has a { that does not begin a parameter such as {id}\n"+
				"  line 7: GET /a}: has a } without {\n"+
				"  line 8: GET /"+strings.Repeat(".", 600)+"/{p}: as a route: Route_prefix: has 1207 characters; at most 1024 are allowed"),
	)

	It("limits the number of lines", func() {
		var paths strings.Builder
		for i := range 150 {
			fmt.Fprintf(&paths, "  /%d: {get: {}}\n", i)
		}
		_, err := plan(withPaths(paths.String()), importer.Stored{})
		Expect(strings.Count(err.Error(), "\n")).To(Equal(101))
		Expect(err).To(MatchError(HaveSuffix("\n  and 50 more")))
	})
})
