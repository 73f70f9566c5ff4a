package rest_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	contract "github.com/gatehouse-gateway/gatehouse/api"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

var update = flag.Bool("update", false, "write docs/endpoints.md again")

const endpointsFile = "../../../docs/endpoints.md"

// document is api/openapi.yaml for one schema word.
type document struct {
	*openapi3.T
	// operations has every one by its name, "GET /upstream/{upstream}".
	operations map[string]*openapi3.Operation
	// paths are in the order in which to look: dump before {service}.
	paths []pathPattern
	// outside has the answers to calls that are no operation, and to a bug.
	outside *openapi3.Operation
}

type pathPattern struct {
	path    string
	pattern *regexp.Regexp
}

func openDocument(word string) *document {
	GinkgoHelper()
	text := bytes.ReplaceAll(contract.OpenAPI(), []byte("core_db"), []byte(word))
	doc, err := openapi3.NewLoader().LoadFromData(text)
	Expect(err).NotTo(HaveOccurred())
	d := &document{
		T: doc, operations: map[string]*openapi3.Operation{},
		outside: &openapi3.Operation{Responses: openapi3.NewResponses()},
	}
	variable := regexp.MustCompile(`\\{\w+\\}`)
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		for method, operation := range doc.Paths.Value(path).Operations() {
			d.operations[method+" "+path] = operation
		}
		pattern := variable.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+")
		d.paths = append(d.paths, pathPattern{path, regexp.MustCompile("^" + pattern + "$")})
	}
	for status, name := range map[string]string{
		"401": "Unauthorized", "403": "Forbidden", "404": "NotFound", "405": "MethodNotAllowed", "406": "NotAcceptable",
		"429": "TooManyRequests", "500": "BadRequest", "503": "Unavailable",
	} {
		d.outside.Responses.Set(status, doc.Components.Responses[name])
	}
	return d
}

// find returns the name of the operation that the router chooses. HEAD is GET.
func (d *document) find(method, path string) string {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if strings.HasPrefix(path, "/docs/") {
		return method + " /docs/{asset}" // the name has slashes, which OpenAPI cannot say
	}
	if strings.HasPrefix(path, "/ui/") && d.operations[method+" "+path] == nil {
		return method + " /ui/{asset}"
	}
	for _, p := range d.paths {
		if name := method + " " + p.path; p.pattern.MatchString(path) && d.operations[name] != nil {
			return name
		}
	}
	return ""
}

// check reports how an answer differs from the document.
func (d *document) check(req *http.Request, operation string, a answer) error {
	op := d.operations[operation]
	if op == nil || a.status == http.StatusInternalServerError {
		op = d.outside
	}
	promised := op.Responses.Status(a.status)
	if promised == nil {
		return fmt.Errorf("status %d is not documented", a.status)
	}
	for _, name := range []string{"Gatehouse-Revision", "ETag", "Link", "Retry-After", "WWW-Authenticate", "Allow", "Location"} {
		_, documented := promised.Value.Headers[name]
		has := len(a.header.Values(name)) > 0
		stored := name == "Gatehouse-Revision" && req.URL.Query().Get("dry_run") != "true"
		if has && !documented || !has && documented && stored {
			return fmt.Errorf("header %s: is there is %t, documented is %t", name, has, documented)
		}
	}
	if a.status == http.StatusNotModified { // kin-openapi takes no notice of it
		if a.body != "" {
			return errors.New("status 304 has a body")
		}
		return nil
	}
	if a.body != "" && a.header.Get("Content-Encoding") == "gzip" {
		r, err := gzip.NewReader(strings.NewReader(a.body))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		a.body = string(text)
	}
	options := &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true}
	if req.Method == http.MethodHead {
		options.ExcludeResponseBody = true
		req = req.Clone(req.Context())
		req.Method = http.MethodGet // of HEAD it would check nothing
	}
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: req, Route: &routers.Route{Spec: d.T, Operation: op},
		},
		Status: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body)), Options: options,
	})
	if err != nil {
		return errors.New(err.Error()) // gomega would show the whole document that is in it
	}
	return nil
}

// coverage holds the documents, and for each operation the specs that got it
// done.
type coverage struct {
	mu        sync.Mutex
	documents map[string]*document
	specs     map[string]map[string]types.CodeLocation
}

var covered = coverage{documents: map[string]*document{}, specs: map[string]map[string]types.CodeLocation{}}

func (c *coverage) document(word string) *document {
	GinkgoHelper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.documents[word] == nil {
		c.documents[word] = openDocument(word)
	}
	return c.documents[word]
}

func (c *coverage) add(operation string) {
	spec := CurrentSpecReport()
	// A table is one spec here, whatever its entries.
	texts := append(slices.Clone(spec.ContainerHierarchyTexts), spec.LeafNodeText)
	locations := append(slices.Clone(spec.ContainerHierarchyLocations), spec.LeafNodeLocation)
	text := strings.Join(texts[:min(2, len(texts))], " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.specs[operation] == nil {
		c.specs[operation] = map[string]types.CodeLocation{}
	}
	c.specs[operation][text] = locations[min(2, len(texts))-1]
}

// judge fails the spec when an answer is not what api/openapi.yaml promises,
// and returns the operation.
func (a *api) judge(req *http.Request, got answer) string {
	GinkgoHelper()
	d := covered.document(a.word)
	operation := d.find(req.Method, req.URL.EscapedPath())
	Expect(d.check(req, operation, got)).To(Succeed(), "%s %s: the answer is not what api/openapi.yaml says about %q", req.Method, req.URL, operation)
	return operation
}

// table is docs/endpoints.md. missing are the operations that succeed in no
// spec.
func (c *coverage) table() (table string, missing []string) {
	var b strings.Builder
	b.WriteString("# Endpoints\n\n" +
		"Every call of the REST API, with the first spec of `pkg/input/rest` in which it succeeds, and the number of these specs.\n" +
		"The specs write this table (`make endpoints`). They fail if a call has no spec or if this file is not up to date, and\n" +
		"they check every answer against [openapi.yaml](../api/openapi.yaml), which the program serves at `/openapi.yaml` and\n" +
		"displays at `/docs/api/`.\n\n" +
		"| call | does | shown by | specs |\n|---|---|---|---|\n")
	operations := covered.document("core_db").operations
	for _, name := range slices.SortedFunc(maps.Keys(operations), byPath) {
		specs := slices.SortedFunc(maps.Keys(c.specs[name]), func(a, b string) int {
			at, bt := c.specs[name][a], c.specs[name][b]
			return cmp.Or(cmp.Compare(at.FileName, bt.FileName), cmp.Compare(at.LineNumber, bt.LineNumber))
		})
		if len(specs) == 0 {
			missing = append(missing, name)
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d |\n", name, operations[name].Summary, strings.ReplaceAll(specs[0], "|", `\|`), len(specs))
	}
	return b.String(), missing
}

// byPath orders names of operations by path, then by what comes first in the
// life of an object.
func byPath(a, b string) int {
	methods := []string{"POST", "GET", "PUT", "PATCH", "DELETE"}
	methodA, pathA, _ := strings.Cut(a, " ")
	methodB, pathB, _ := strings.Cut(b, " ")
	return cmp.Or(cmp.Compare(pathA, pathB), cmp.Compare(slices.Index(methods, methodA), slices.Index(methods, methodB)))
}

func queryParameters(operation *openapi3.Operation) (names []string) {
	for _, p := range operation.Parameters {
		if p.Value.In == openapi3.ParameterInQuery {
			names = append(names, p.Value.Name)
		}
	}
	return names
}

func properties(schema *openapi3.SchemaRef) []string {
	names := slices.Collect(maps.Keys(schema.Value.Properties))
	for _, part := range schema.Value.AllOf {
		names = append(names, properties(part)...)
	}
	return names
}

var _ = ReportAfterSuite("docs/endpoints.md says what the specs cover", func(report Report) {
	if !report.SuiteSucceeded || report.PreRunStats.SpecsThatWillRun != report.PreRunStats.TotalSpecs {
		return // some specs did not run or did not finish
	}
	table, missing := covered.table()
	Expect(missing).To(BeEmpty(), "these operations of api/openapi.yaml succeed in no spec")
	if *update {
		Expect(os.WriteFile(endpointsFile, []byte(table), 0o644)).To(Succeed())
	}
	written, err := os.ReadFile(endpointsFile)
	Expect(err).NotTo(HaveOccurred(), "make endpoints writes it")
	Expect(string(written)).To(Equal(table), "docs/endpoints.md is not up to date: run make endpoints")
})

var _ = Describe("The contract", func() {
	It("describes the existing calls, and no others", func() {
		var routes []string
		for _, r := range rest.Routes(rest.New(rest.Options{Tokens: struct{ tokens }{}, ProxyTokens: struct{ proxyTokens }{}})) {
			if r.Method != http.MethodHead {
				routes = append(routes, r.Method+" "+regexp.MustCompile(`[:*]\w+`).ReplaceAllString(r.Path, "{}"))
			}
		}
		var described []string
		for name := range covered.document("core_db").operations {
			if name == "GET /ui/session" {
				continue // the router takes it for a file of the console
			}
			described = append(described, regexp.MustCompile(`{\w+}`).ReplaceAllString(name, "{}"))
		}
		Expect(routes).To(ConsistOf(described))
	})

	It("names the query parameters of each call, and no others", func() {
		a := startAPI(open)
		for name, operation := range covered.document("core_db").operations {
			if operation.Security != nil { // those without a token take any
				continue
			}
			method, path, _ := strings.Cut(name, " ")
			path = regexp.MustCompile(`{\w+}`).ReplaceAllString(path, "x")
			got, _ := a.call(method, path+"?zzzzzzzzz=1", "", nil)
			message := "this call takes none"
			if known := queryParameters(operation); len(known) > 0 {
				message = "known parameters are " + strings.Join(known, ", ")
			}
			got.expectProblem(400, invalid(path, "zzzzzzzzz", "unknown query parameter; "+message))
		}
	})

	It("names the fields of a new object, and no others", func() {
		a, seen := startAPI(open, withUsers(startProvider())), 0
		for name, operation := range covered.document("core_db").operations {
			method, path, _ := strings.Cut(name, " ")
			path = regexp.MustCompile(`{\w+}`).ReplaceAllString(path, "x")
			if operation.RequestBody == nil || method == http.MethodPatch || operation.RequestBody.Value.Content[form] == nil {
				continue
			}
			got, _ := a.call(method, path, form, strings.NewReader("zzzzzzzzz=1"))
			Expect(got.status).To(Equal(400), name)
			known := regexp.MustCompile(`unknown field; (?:known fields are|this call takes) ([\w, ]+)`).FindStringSubmatch(got.body)
			Expect(known).To(HaveLen(2), got.body)
			Expect(regexp.MustCompile(`, | and `).Split(known[1], -1)).
				To(ConsistOf(properties(operation.RequestBody.Value.Content[form].Schema)), name)
			seen++
		}
		Expect(seen).To(Equal(11 + 11 + 4 + 3 + 3)) // POST, PUT, uploads, tokens, sessions
	})

	It("finds the same operation as the router", func() {
		d := covered.document("core_db")
		for call, operation := range map[string]string{
			"GET /service/dump/route":    "GET /service/dump/{service}",
			"GET /service/dump":          "GET /service/{service}",
			"GET /service/shop/route":    "GET /service/{service}/route",
			"HEAD /upstream/a%2Fb":       "GET /upstream/{upstream}",
			"POST /service/copy/route/b": "POST /service/copy/{a}/{b}",
			"POST /upstream/blue":        "",
			"GET /upstream/":             "",
			"GET /nope":                  "",
		} {
			method, path, _ := strings.Cut(call, " ")
			Expect(d.find(method, path)).To(Equal(operation), call)
		}
	})

	DescribeTable("notices an answer that violates it", func(method, path string, status int, contentType, body, message string) {
		d := covered.document("core_db")
		req, err := http.NewRequest(method, "http://gatehouse"+path, nil)
		Expect(err).NotTo(HaveOccurred())
		header := http.Header{"Content-Type": {contentType}}
		err = d.check(req, d.find(method, path), answer{status, header, body})
		if message == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("valid", "GET", "/health", 200, "application/json", `{"status":"ok"}`, ""),
		Entry("status", "GET", "/health", 202, "application/json", `{"status":"ok"}`, "status 202 is not documented"),
		Entry("status of HEAD", "HEAD", "/health", 202, "application/json", ``, "status 202 is not documented"),
		Entry("content type", "GET", "/health", 200, "text/plain", `{"status":"ok"}`, `response header Content-Type has unexpected value: "text/plain"`),
		Entry("field", "GET", "/health", 200, "application/json", `{"status":"ok","more":1}`, `property "more" is unsupported`),
		Entry("null for a list", "GET", "/service", 200, "application/json", `{"data":{"core_db_service":null}}`, "Value is not nullable"),
		Entry("another key", "GET", "/service", 200, "application/json", `{"data":{"core_db_upstream":[]}}`, `property "core_db_upstream" is unsupported`),
		Entry("revision", "POST", "/service", 201, "application/json", `{"data":{"insert_core_db_service":{"affected_rows":1}}}`, "Gatehouse-Revision"),
		Entry("no problem", "GET", "/nope", 404, "application/json", `{}`, `response header Content-Type has unexpected value: "application/json"`),
		Entry("success of nothing", "GET", "/nope", 200, "application/json", `{}`, "status 200 is not documented"),
	)
})
