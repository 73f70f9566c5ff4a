package document_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

var _ = DescribeTable("Parse refuses", func(text string, want ...string) {
	mediaType := "application/yaml"
	if text != "" && strings.ContainsAny(text[:1], `{["`) {
		mediaType = "application/json; charset=utf-8"
	}
	_, err := document.Parse([]byte(text), mediaType)
	Expect(messages(err)).To(Equal(want))
},
	Entry("nothing", "", "the document cannot be read as YAML: it is empty"),
	Entry("a comment alone", "# a\n", "the document cannot be read as YAML: it is empty"),
	Entry("a text", "hello", "line 1: the document must begin with version: 1, not with text"),
	Entry("a list", "- a", "line 1: the document must begin with version: 1, not with an array"),
	Entry("no version", "upstreams: []", "line 1: version: is required; write version: 1"),
	Entry("another version", "version: 2", "line 1: version: must be 1, the only version that this program supports"),
	Entry("a version in quotes", "version: '1'", "line 1: version: must be 1, the only version that this program supports"),
	Entry("bad YAML", "version: 1\na: [\n", "the document cannot be read as YAML: line 2: did not find expected node content"),
	Entry("an unknown section", "version: 1\nupstream: []", "line 2: upstream: is unknown; did you mean upstreams?"),
	Entry("a key twice", "version: 1\nVersion: 1", "line 2: version: appears twice"),
	Entry("a section that is not a list", "version: 1\nroutes: 1\nproxies: {}",
		"line 2: routes: is unknown; did you mean proxies?", "line 3: proxies: must be a list, not an object; omit it if it is empty"),
	Entry("an empty section", "version: 1\nproxies:", "line 2: proxies: must be a list, not null; omit it if it is empty"),
	Entry("an element that is not an object", "version: 1\nproxies: [gw]", "line 2: proxies[0]: must be an object, not text"),
	Entry("an unknown field", "version: 1\nproxies:\n- name: gw\n  http_prot: 1", `line 4: proxies["gw"].http_prot: is unknown; did you mean http_port?`),
	Entry("a number for text", "version: 1\nproxies:\n- name: gw\n  listen_ip: 1", `line 4: proxies["gw"].listen_ip: must be text, not a number`),
	Entry("no name", "version: 1\n\nproxies:\n- http_port: 1", "line 4: proxies[0].name: is required"),
	Entry("a name twice", "version: 1\nproxies:\n- name: gw\n- name: gw", `line 4: proxies["gw"]: appears twice; the first is on line 3`),
	Entry("a link twice", "version: 1\nproxies:\n- name: gw\n  services:\n  - a\n  - b\n  - a", `line 7: proxies["gw"].services[2]: "a" appears twice`),
	Entry("a link that is not a name", "version: 1\nproxies:\n- name: gw\n  services: [1, '', ~]",
		`line 4: proxies["gw"].services[0]: must be a name, not a number`, `line 4: proxies["gw"].services[1]: must be a name, not empty`,
		`line 4: proxies["gw"].services[2]: must be a name, not null`),
	Entry("links that are not a list", "version: 1\nproxies:\n- name: gw\n  services: a",
		`line 4: proxies["gw"].services: must be a list of names, not text; omit it to keep what is attached`),
	Entry("a bad part of a field", "version: 1\nservices:\n- service_name: s\n  fqdn: '*'\n  routes:\n  - route_name: r\n    route_prefix: /\n    route_config:\n      match: x",
		`line 8: services["s"].routes["r"].route_config.match: "x" is not one of prefix, segment, exact, template, regex`),
	Entry("a key twice within a field", "version: 1\nservices:\n- service_name: s\n  fqdn: '*'\n  routes:\n  - route_name: r\n    route_prefix: /\n    route_config: {match: exact, MATCH: exact}",
		`line 8: services["s"].routes["r"].route_config: has the key "MATCH" twice in one object`),
	Entry("a number that JSON lacks", "version: 1\nfilters:\n- filter_name: f\n  filter_type: route_filter_ratelimit\n  filter_config: {a: .inf}",
		`line 5: filters["f"].filter_config: ".inf" is not allowed in JSON`),
	Entry("an alias", "version: 1\na: &x 1\nb: *x", "the document cannot be read as YAML: line 2: anchors (&) and aliases (*) are not supported; quote a string that begins with one"),
	Entry("a merge key", "version: 1\nproxies:\n- <<: {name: gw}", "the document cannot be read as YAML: line 3: merge keys (<<) are not supported"),
	Entry("a tag", "version: !!int 1", "the document cannot be read as YAML: line 1: tags (!) are not supported; quote a string that begins with one"),
	Entry("a key that is not text", "version: 1\n? [a]\n: b", "the document cannot be read as YAML: line 2: a key must be text"),
	Entry("two documents", "version: 1\n---\nversion: 1", "the document cannot be read as YAML: line 2: contains a second document"),
	Entry("deep YAML", "version: 1\na: "+strings.Repeat("[", 64)+strings.Repeat("]", 64), "the document cannot be read as YAML: line 2: nests deeper than 64 levels"),
	Entry("deep JSON", "[\n"+strings.Repeat("[", 64), "the document cannot be read as JSON: line 2: nests deeper than 64 levels"),
	Entry("bad JSON", "{\n\"version\": 1,\n}", "the document cannot be read as JSON: line 3: invalid character '}' looking for beginning of object key string"),
	Entry("truncated JSON", "{\n\"version\": 1\n", "the document cannot be read as JSON: line 2: ends too early"),
	Entry("two JSON values", "{\"version\": 1}\n{}", "the document cannot be read as JSON: line 2: contains more than one JSON value"),
	Entry("JSON with a bad object", "{\"version\": 1,\n\"proxies\": [\n{\"name\": \"gw\"},\n{\n\"name\": \"b\",\n\"http_port\":\n0}]}",
		`line 6: proxies["b"].http_port: 0 is not between 1 and 65535`),
	Entry("text that is not UTF-8", "{\"version\": 1, \"proxies\": [{\"name\": \"a\xff\"}]}",
		`line 1: proxies["a�"].name: contains text that is not valid UTF-8`),
)

var _ = It("accepts a document in any letter case, with comments", func() {
	doc, err := document.Parse([]byte("# a\nVERSION: 1\nProxies:\n- NAME: gw # b\n  Services: [a]\n"), "text/yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(doc.Items).To(HaveLen(1))
	Expect(doc.Items[0].Line).To(Equal(4))
	Expect(doc.Items[0].At).To(Equal(`proxies["gw"]`))
})

var _ = It("refuses another content type", func() {
	_, err := document.Parse(nil, "text/html")
	Expect(messages(err)).To(Equal([]string{`a configuration document cannot be of the type "text/html"`}))
})

var _ = It("reports at most 100 errors", func() {
	var b strings.Builder
	b.WriteString("version: 1\nproxies:\n")
	for i := range 200 {
		fmt.Fprintf(&b, "- {name: p%d, http_port: 0}\n", i)
	}
	_, err := document.Parse([]byte(b.String()), "")
	Expect(messages(err)).To(HaveLen(100))
	Expect(messages(err)[99]).To(HavePrefix(`line 102: proxies["p99"].http_port: `))
})

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		everything, "version: 1\n", "", "version: 1\nproxies:\n- <<: *a\n", "a: &a [*a]", "? {a: b}\n: c", "%YAML 1.1\n---\nversion: 1",
		"version: 1\nservices:\n- routes:\n  - route_config: {a: !!binary x}\n", "{\"version\":1,\"upstreams\":[{\"upstream_port\":1e999}]}",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, asJSON bool) {
		mediaType := "application/yaml"
		if asJSON {
			mediaType = "application/json"
		}
		doc, err := document.Parse(data, mediaType)
		if err != nil {
			return
		}
		// An accepted value is written back unchanged, in both languages.
		for _, asJSON := range []bool{false, true} {
			first := encode(t, doc, asJSON)
			mediaType := "application/yaml"
			if asJSON {
				mediaType = "application/json"
			}
			again, err := document.Parse([]byte(first), mediaType)
			if err != nil {
				t.Fatalf("%v\n%s", err, first)
			}
			if second := encode(t, again, asJSON); second != first {
				t.Fatalf("have\n%s\nwant\n%s", second, first)
			}
		}
	})
}

func encode(t *testing.T, doc *document.Document, asJSON bool) string {
	var out strings.Builder
	if err := document.Encode(&out, doc, asJSON); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
