package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func TestConfigTypes(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "configtypes")
}

// example is a package with a configuration of each form.
const example = `package example

const most = 7

func Units() []string { return []string{"second", "day"} }

// Limit is how often. At most 7.
// +page=limit.md
// +example={times: 1,
// per: day}
type Limit struct { // for readers of the code
	// How often.
	// +required
	// +maximum=most
	Times int64 ` + "`json:\"times\"`" + `
	// +enum=Units
	Per Unit ` + "`json:\"per,omitempty\"`" + ` // for readers of the code
	On *Days
	Days []Days ` + "`json:\"days\"`" + `
	Base
	Hidden string ` + "`json:\"-\"`" + `
}

// Base has what all have.
type Base struct {
	// The shadow of it.
	Shadow *Days ` + "`json:\"shadow\"`" + `
}

type Days struct {
	Names map[string]bool ` + "`json:\"names\"`" + `
}

type Unit = string
`

// schemaOf returns the schemas for the types of the example, and the error.
func schemaOf(text string) (string, error) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.WriteFile(dir+"/example.go", []byte(text), 0o600)).To(Succeed())
	src, err := parseModel(dir)
	if err != nil {
		return "", err
	}
	sections, err := src.openAPI([]configType{{"limit", []string{"route"}, src.types["Limit"]}}, nil, nil)
	return sections["schemas of configs"], err
}

var _ = Describe("Everything that repeats pkg/core/model", func() {
	It("agrees with it and with api/calls.yaml", func() {
		files, err := generate("../..")
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(3))
		var stale []string
		for _, f := range files {
			have, err := os.ReadFile(f.path)
			Expect(err).NotTo(HaveOccurred())
			if string(have) != f.text {
				stale = append(stale, f.path)
			}
		}
		Expect(stale).To(BeEmpty(), "run make types")
	})

	It("has an example of each form of each type, which is accepted", func() {
		src, err := parseModel("../../pkg/core/model")
		Expect(err).NotTo(HaveOccurred())
		filters, err := src.configTypes(model.KindFilter)
		Expect(err).NotTo(HaveOccurred())
		for _, t := range filters {
			for _, config := range src.examples(t) {
				Expect((&model.Filter{Name: "f", Type: t.name, Config: config}).Validate()).To(BeEmpty(), "%s: %s", t.name, config)
			}
		}
		globals, err := src.configTypes(model.KindGlobalConfig)
		Expect(err).NotTo(HaveOccurred())
		for _, t := range globals {
			for _, config := range src.examples(t) {
				Expect((&model.GlobalConfig{Name: "g", Type: t.name, Config: config}).Validate()).To(BeEmpty(), "%s: %s", t.name, config)
			}
		}
		lists, err := src.configTypes(model.KindList)
		Expect(err).NotTo(HaveOccurred())
		for _, t := range lists {
			for _, config := range src.examples(t) {
				Expect((&model.List{Name: "l", Type: t.name, Config: config}).Validate()).To(BeEmpty(), "%s: %s", t.name, config)
			}
		}
	})
})

// examples returns the examples of a type, as JSON.
func (s *source) examples(t configType) (list []model.JSON) {
	GinkgoHelper()
	forms := []*goType{t.spec}
	if t.spec.doc.or != "" {
		forms = append(forms, s.types[t.spec.doc.or])
	}
	for _, form := range forms {
		Expect(form.doc.keywords).To(HaveKey("example"), form.name)
		var value any
		Expect(form.doc.keywords["example"].Decode(&value)).To(Succeed())
		text, err := json.Marshal(value)
		Expect(err).NotTo(HaveOccurred())
		list = append(list, model.JSON(text))
	}
	return list
}

var _ = Describe("The schema of a Go type", func() {
	It("has its fields, their comments, and the values of constants", func() {
		text, err := schemaOf(example)
		Expect(err).NotTo(HaveOccurred())
		var got map[string]any
		Expect(yaml.Unmarshal([]byte(text), &got)).To(Succeed())
		var want map[string]any
		Expect(yaml.Unmarshal([]byte(`
FilterType: {description: "On a route: limit.", type: string, enum: [limit], x-schemas: {limit: [Limit]}}
GlobalconfigType: {type: string, enum: [], x-schemas: {}}
ListType: {type: string, enum: []}
Limit:
  description: How often. At most 7.
  type: object
  required: [times]
  additionalProperties: false
  properties:
    times: {description: How often., type: integer, format: int64, maximum: 7}
    per: {allOf: [{$ref: "#/components/schemas/Unit"}], enum: [second, day]}
    days: {type: array, items: {$ref: "#/components/schemas/Days"}}
    shadow: {description: The shadow of it., allOf: [{$ref: "#/components/schemas/Days"}]}
  example: {times: 1, per: day}
Unit: {type: string}
Days:
  type: object
  additionalProperties: false
  properties:
    names: {type: object, additionalProperties: {type: boolean}}
`), &want)).To(Succeed())
		Expect(got).To(Equal(want))
	})

	DescribeTable("is refused", func(text, message string) {
		_, err := schemaOf("package example\n\n" + text)
		Expect(err).To(MatchError(message))
	},
		Entry("with a keyword that OpenAPI does not have", "// Limit limits.\n// +most=5\ntype Limit struct{}",
			"type Limit: +most is not a keyword; known keywords are required, page, or, schema, description, $ref, allOf, anyOf, type, format, enum, pattern, minLength, maxLength, minimum, maximum, "+
				"minItems, maxItems, minProperties, maxProperties, required, additionalProperties, items, properties, writeOnly, example"),
		Entry("with a value that cannot be parsed", "// Limit limits.\n// +example={a\ntype Limit struct{}", "type Limit: the value of +example is no YAML: {a"),
		Entry("of a field without a type", "type Limit struct { Call func() `json:\"call\"` }",
			"type Limit: call: no schema can be made of a *ast.FuncType; give +anyOf or +$ref"),
		Entry("of a type that does not exist", "type Limit struct { Other Other `json:\"other\"` }", "pkg/core/model has no type Other"),
	)
})

// templates are an api/calls.yaml.
const templates = `
each: {schemas: {<Kind>Deleted: {type: object}}}
object:
  paths:
    <list>:
      get: {id: list<Kinds>, tag: <tag>, summary: List <kinds of owner>, parameters: [limit], answers: {200: <Kinds>Page}}
    <path>:
      put: {id: put<Kind>, tag: <tag>, summary: Put <a kind>, write: true, parameters: [ifMatch], form: <Kind>Put, answers: {200: Put}}
  responses: {<Kinds>Page: {example: [<example>]}}
link:
  paths:
    <path>:
      get: {id: read<Kind>, tag: <owner>, summary: "Read the <attached noun> of <an owner>", parameters: [ifNoneMatch], answers: {200: Read}}
user:
  paths:
    <path>/<user>:
      get: {id: list<Users>Of<Kind>, tag: <tag>, summary: List the <users> that <use>, answers: {200: <Users>Page}}
form: {requestBodies: {<Form>Body: {required: true}}}
rest:
  paths:
    /keyset: {get: {summary: List sets}}
    /docs: {get: {id: docs, tag: document, summary: Docs, public: true, answers: {200: Docs}}}
`

// callsOf returns the sections of the document for templates, as values.
func callsOf(text string) (map[string]map[string]any, error) {
	GinkgoHelper()
	path := GinkgoT().TempDir() + "/calls.yaml"
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	src, err := parseModel("../../pkg/core/model")
	Expect(err).NotTo(HaveOccurred())
	made, err := src.calls(path, nil)
	values := map[string]map[string]any{}
	for name, section := range made {
		var value map[string]any
		Expect(yaml.Unmarshal([]byte(section), &value)).To(Succeed())
		values[name] = value
	}
	return values, err
}

var _ = Describe("The calls in the OpenAPI document", func() {
	DescribeTable("follow from the kinds and the templates", func(section, name, want string) {
		made, err := callsOf(templates)
		Expect(err).NotTo(HaveOccurred())
		var value any
		Expect(yaml.Unmarshal([]byte(want), &value)).To(Succeed())
		Expect(made[section]).To(HaveKeyWithValue(name, value))
	},
		Entry("of a kind with an owner", "paths", "/keyset/{keyset}/key", `
parameters: [{$ref: "#/components/parameters/keysetName"}]
get:
  tags: [keyset]
  operationId: listKeys
  summary: List the keys of a key set
  parameters: [{$ref: "#/components/parameters/limit"}]
  responses:
    "200": {$ref: "#/components/responses/KeysPage"}
    "400": {$ref: "#/components/responses/BadRequest"}
    "401": {$ref: "#/components/responses/Unauthorized"}
    "403": {$ref: "#/components/responses/Forbidden"}
    "404": {$ref: "#/components/responses/NotFound"}
    "406": {$ref: "#/components/responses/NotAcceptable"}
    "429": {$ref: "#/components/responses/TooManyRequests"}
    "503": {$ref: "#/components/responses/Unavailable"}
`),
		Entry("with a difference", "paths", "/keyset", `
get:
  tags: [keyset]
  operationId: listKeysets
  summary: List sets
  parameters: [{$ref: "#/components/parameters/limit"}]
  responses:
    "200": {$ref: "#/components/responses/KeysetsPage"}
    "400": {$ref: "#/components/responses/BadRequest"}
    "401": {$ref: "#/components/responses/Unauthorized"}
    "403": {$ref: "#/components/responses/Forbidden"}
    "406": {$ref: "#/components/responses/NotAcceptable"}
    "429": {$ref: "#/components/responses/TooManyRequests"}
    "503": {$ref: "#/components/responses/Unavailable"}
`),
		Entry("that write", "paths", "/upstream/{upstream}", `
parameters: [{$ref: "#/components/parameters/upstreamName"}]
put:
  tags: [upstream]
  operationId: putUpstream
  summary: Put an upstream
  parameters:
    - {$ref: "#/components/parameters/onlyTry"}
    - {$ref: "#/components/parameters/wait"}
    - {$ref: "#/components/parameters/timeout"}
    - {$ref: "#/components/parameters/message"}
    - {$ref: "#/components/parameters/ifMatch"}
  requestBody: {$ref: "#/components/requestBodies/UpstreamPutBody"}
  responses:
    "200": {$ref: "#/components/responses/Put"}
    "202": {$ref: "#/components/responses/LaggingResponse"}
    "400": {$ref: "#/components/responses/BadRequest"}
    "401": {$ref: "#/components/responses/Unauthorized"}
    "403": {$ref: "#/components/responses/Forbidden"}
    "404": {$ref: "#/components/responses/NotFound"}
    "405": {$ref: "#/components/responses/MethodNotAllowed"}
    "406": {$ref: "#/components/responses/NotAcceptable"}
    "409": {$ref: "#/components/responses/Conflict"}
    "412": {$ref: "#/components/responses/PreconditionFailed"}
    "413": {$ref: "#/components/responses/TooLarge"}
    "415": {$ref: "#/components/responses/UnsupportedMediaType"}
    "422": {$ref: "#/components/responses/CannotWork"}
    "429": {$ref: "#/components/responses/TooManyRequests"}
    "503": {$ref: "#/components/responses/Unavailable"}
`),
		Entry("of a link", "paths", "/proxy/{proxy}/globalconfig/{globalconfig}", `
parameters: [{$ref: "#/components/parameters/proxyName"}, {$ref: "#/components/parameters/globalconfigName"}]
get:
  tags: [proxy]
  operationId: readProxyGlobalconfig
  summary: Read the global config of a proxy
  parameters: [{$ref: "#/components/parameters/ifNoneMatch"}]
  responses:
    "200": {$ref: "#/components/responses/Read"}
    "304": {$ref: "#/components/responses/NotModified"}
    "400": {$ref: "#/components/responses/BadRequest"}
    "401": {$ref: "#/components/responses/Unauthorized"}
    "403": {$ref: "#/components/responses/Forbidden"}
    "404": {$ref: "#/components/responses/NotFound"}
    "406": {$ref: "#/components/responses/NotAcceptable"}
    "429": {$ref: "#/components/responses/TooManyRequests"}
    "503": {$ref: "#/components/responses/Unavailable"}
`),
		Entry("of what attaches an object, and may also name it", "paths", "/secret/{secret}/service", `
parameters: [{$ref: "#/components/parameters/secretName"}]
get:
  tags: [secret]
  operationId: listServicesOfSecret
  summary: List the services that a secret is attached to
  responses:
    "200": {$ref: "#/components/responses/ServicesPage"}
    "400": {$ref: "#/components/responses/BadRequest"}
    "401": {$ref: "#/components/responses/Unauthorized"}
    "403": {$ref: "#/components/responses/Forbidden"}
    "404": {$ref: "#/components/responses/NotFound"}
    "406": {$ref: "#/components/responses/NotAcceptable"}
    "429": {$ref: "#/components/responses/TooManyRequests"}
    "503": {$ref: "#/components/responses/Unavailable"}
`),
		Entry("that are public", "paths", "/docs", `
get:
  tags: [document]
  operationId: docs
  summary: Docs
  security: []
  responses: {"200": {$ref: "#/components/responses/Docs"}, "406": {$ref: "#/components/responses/NotAcceptable"}}
`),
		Entry("with the bodies of their forms", "forms", "ProxyPutBody", "{required: true}"),
		Entry("with an example of an object and its defaults", "answers of kinds", "SecretsPage", `
example:
  - {secret_id: 1, secret_name: shop-tls, secret_type: tls, secret_sni: shop.example.com, fingerprint: "sha256:0f1e",
    subject: CN=shop.example.com, issuer: CN=R11, host_names: [shop.example.com], not_after: "2027-11-21T08:07:39.000000+00:00",
    tags: [], create_ts: "2026-11-21T08:07:39.123456+00:00", update_ts: "2026-11-21T08:07:39.123456+00:00"}
`),
		Entry("with an object in answers", "schemas of kinds", "Key", `
type: object
required: [key_id, keyset_name, key_name, key_hash, key_description, key_expires, tags, create_ts, update_ts]
additionalProperties: false
properties:
  key_id: {$ref: "#/components/schemas/ID"}
  keyset_name: {$ref: "#/components/schemas/Name"}
  key_name: {$ref: "#/components/schemas/Name"}
  key_hash: {$ref: "#/components/schemas/KeyHash"}
  key_description: {$ref: "#/components/schemas/KeyDescription"}
  key_expires: {$ref: "#/components/schemas/KeyExpires"}
  tags: {$ref: "#/components/schemas/Tags"}
  create_ts: {$ref: "#/components/schemas/Timestamp"}
  update_ts: {$ref: "#/components/schemas/Timestamp"}
  status: {$ref: "#/components/schemas/ObjectStatus"}
`),
		Entry("with a body, which describes bounds and defaults", "schemas of kinds", "ProxyPatch", `
type: object
additionalProperties: false
properties:
  Name: {$ref: "#/components/schemas/Name"}
  Http_port: {description: "Port of the HTTP listener. Default: 8080.", type: integer, minimum: 1, maximum: 65535}
  Https_port:
    description: "Port of the HTTPS listener, which is open while a service of the proxy has a certificate. Default: 8443."
    type: integer
    minimum: 1
    maximum: 65535
  Listen_ip:
    description: "Address of both listeners. Default: 0.0.0.0, or in a standalone gateway the value of --listen-ip."
    type: string
    minLength: 1
  Trusted_hops:
    description: >-
      The exact number of your own proxies in front of the gateway that every request passes, such as load balancers
      that append to X-Forwarded-For. The client's address is at this position from the right in that header; 0 means
      the address of the connection, whatever the header contains. If the number is too high, a client can forge its
      address and escape its rate limit. Default: 0.
    type: integer
    minimum: 0
    maximum: 10
  Escaped_slashes: {$ref: "#/components/schemas/EscapedSlashes"}
  Underscore_headers: {$ref: "#/components/schemas/UnderscoreHeaders"}
  Tls_min_version: {$ref: "#/components/schemas/TLSMinVersion"}
  Http3:
    description: >-
      Serves services with a certificate over HTTP/3 too, at the UDP port with the number of Https_port. Default: false.
    type: boolean
  Alt_svc_port:
    description: >-
      The UDP port at which clients reach HTTP/3, if it is not Https_port, for example behind a load balancer. Responses
      name it in the header alt-svc. 0 means Https_port. Default: 0.
    type: integer
    minimum: 0
    maximum: 65535
  tags: {$ref: "#/components/schemas/TagsField"}
`),
		Entry("with what a body requires", "schemas of kinds", "ServicePut",
			`{required: [fqdn], allOf: [{$ref: "#/components/schemas/ServicePatch"}, {}]}`),
		Entry("with a body that requires nothing", "schemas of kinds", "SecretPut", `{allOf: [{$ref: "#/components/schemas/SecretPatch"}]}`),
		Entry("with an object in a document, whose secrets may be sealed", "schemas of kinds", "ConfigSecret", `
type: object
required: [secret_name]
additionalProperties: false
properties:
  secret_name: {$ref: "#/components/schemas/Name"}
  secret_type: {type: string, enum: [tls, generic, ""]}
  secret_sni: {type: string}
  secret_cert: {type: string}
  secret_key: {type: string}
  secret_value: {type: string}
  tags: {$ref: "#/components/schemas/TagsField"}
`),
		Entry("with a configuration in a body", "schemas of kinds", "RoutePatch", `
type: object
additionalProperties: false
properties:
  Route_Name: {$ref: "#/components/schemas/Name"}
  Route_prefix:
    description: What the path is compared with. /shop also matches /shopping, unless match changes that.
    type: string
    pattern: "^/"
  Route_config:
    description: A JSON object, or a string that contains one.
    anyOf: [{$ref: "#/components/schemas/RouteConfig"}, {$ref: "#/components/schemas/Text"}]
  tags: {$ref: "#/components/schemas/TagsField"}
`),
		Entry("with a configuration in answers", "schemas of kinds", "Filter", `
type: object
required: [filter_id, filter_name, filter_type, filter_config, tags, create_ts, update_ts]
additionalProperties: false
properties:
  filter_id: {$ref: "#/components/schemas/ID"}
  filter_name: {$ref: "#/components/schemas/Name"}
  filter_type: {$ref: "#/components/schemas/FilterType"}
  filter_config: {type: object, additionalProperties: true, description: Secret fields contain <redacted>.}
  tags: {$ref: "#/components/schemas/Tags"}
  create_ts: {$ref: "#/components/schemas/Timestamp"}
  update_ts: {$ref: "#/components/schemas/Timestamp"}
  status: {$ref: "#/components/schemas/ObjectStatus"}
`),
		Entry("with the templates of schemas", "schemas of kinds", "RouteFilterDeleted", "{type: object}"),
	)

	It("are refused without an example of a kind", func() {
		src, err := parseModel("../../pkg/core/model")
		Expect(err).NotTo(HaveOccurred())
		delete(src.types["Proxy"].doc.keywords, "example")
		_, err = src.calls("../../api/calls.yaml", nil)
		Expect(err).To(MatchError("pkg/core/model: *model.Proxy needs +example in its comment"))
	})

	DescribeTable("are refused", func(old, text, message string) {
		_, err := callsOf(strings.Replace(templates, old, text, 1))
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("with an unknown word", "<kinds of owner>", "<kinds of it>", "<kinds of it> stands for nothing"),
		Entry("with an unknown key", "public: true", "open: true", "field open not found"),
		Entry("with an unknown template", "user:", "users:", "field users not found"),
		Entry("for a path that does not exist", "/keyset:", "/keysets:", "/keysets: a call needs id, tag, summary and answers"),
		Entry("with an answer that no call has", "public: true", "errors: [418]", "/docs: no answer is known for the status 418"),
	)
})
