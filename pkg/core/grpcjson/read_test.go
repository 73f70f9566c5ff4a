package grpcjson_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/grpcjson"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// set returns a descriptor set of files as text.
func set(files ...string) []byte {
	GinkgoHelper()
	all := &descriptorpb.FileDescriptorSet{}
	for _, text := range files {
		f := &descriptorpb.FileDescriptorProto{}
		Expect(prototext.Unmarshal([]byte(text), f)).To(Succeed())
		all.File = append(all.File, f)
	}
	b, err := proto.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	return b
}

// books returns a file whose methods have the options.
func books(options ...string) string {
	var text strings.Builder
	text.WriteString(`name: "books.proto" package: "shop" syntax: "proto3"
		message_type { name: "Book"
			field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL json_name: "id" }
			field { name: "shelf_mark" number: 2 type: TYPE_MESSAGE type_name: ".shop.Mark" label: LABEL_OPTIONAL json_name: "shelfMark" }
		}
		message_type { name: "Mark" field { name: "row" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL json_name: "row" } }
		service { name: "Books"`)
	for i, o := range options {
		text.WriteString(`method { name: "Call` + string(rune('A'+i)) + `" input_type: ".shop.Book" output_type: ".shop.Book" options { ` + o + ` } }`)
	}
	return text.String() + "}"
}

func get(template string) string { return `[google.api.http] { get: "` + template + `" }` }

// faulty are sets that are refused. envoy is Envoy's error message; empty means that Envoy accepts
// them.
var faulty = []struct {
	what        string
	set         func() []byte
	options     grpcjson.Options
	says, envoy string
}{
	{"nothing", func() []byte { return nil }, grpcjson.Options{}, "descriptor_set is not a descriptor set", "Could not find 'shop.Books'"},
	{"text", func() []byte { return []byte("syntax = 3;") }, grpcjson.Options{}, "descriptor_set is not a descriptor set", "Unable to parse proto descriptor"},
	{"half a set", func() []byte { b := testkit.BooksSet(); return b[:len(b)/2] }, grpcjson.Options{}, "descriptor_set is not a descriptor set", "Unable to parse proto descriptor"},
	{
		"a set without its imports", func() []byte { return set(books(get("/b")) + ` dependency: "google/api/annotations.proto"`) }, grpcjson.Options{},
		"descriptor_set lacks file google/api/annotations.proto, which books.proto imports; make it with protoc --include_imports", "Unable to build proto descriptor pool",
	},
	{"a file twice", func() []byte { return set(books(get("/b")), books(get("/c"))) }, grpcjson.Options{}, "descriptor_set has file books.proto twice", "Unable to build proto descriptor pool"},
	{
		"an import cycle", func() []byte {
			return set(books(get("/b"))+` dependency: "other.proto"`, `name: "other.proto" syntax: "proto3" dependency: "books.proto"`)
		}, grpcjson.Options{}, "descriptor_set has files that import each other: books.proto and other.proto", "Unable to build proto descriptor pool",
	},
	{
		"a missing type", func() []byte {
			return set(strings.Replace(books(get("/b")), `input_type: ".shop.Book"`, `input_type: ".shop.Tome"`, 1))
		}, grpcjson.Options{},
		`descriptor_set is not valid: service method "shop.Books.CallA" cannot resolve input: "shop.Tome" not found`, "Unable to build proto descriptor pool",
	},
	{"another service", func() []byte { return set(books(get("/b"))) }, grpcjson.Options{Services: []string{"shop.Shelves"}}, "descriptor_set has no service shop.Shelves; it has shop.Books", "Could not find 'shop.Shelves'"},
	{"a message for a service", func() []byte { return set(books(get("/b"))) }, grpcjson.Options{Services: []string{"shop.Book"}}, "descriptor_set has no service shop.Book; it has shop.Books", "Could not find 'shop.Book'"},
	{"no rule", func() []byte { return set(books("")) }, grpcjson.Options{}, "no method of its services has a google.api.http rule", ""},
	{"a path without a slash", func() []byte { return set(books(get("b"))) }, grpcjson.Options{}, `the http rule of shop.Books.CallA has the path "b"; expected a path like /v1/books/{id}`, "Cannot register 'shop.Books.CallA' to path matcher"},
	{"an unclosed variable", func() []byte { return set(books(get("/b/{id"))) }, grpcjson.Options{}, `has the path "/b/{id"; expected a path like`, "to path matcher"},
	{"a variable in a variable", func() []byte { return set(books(get("/b/{id={id}}"))) }, grpcjson.Options{}, "; expected a path like /v1/books/{id}", "to path matcher"},
	{"something after *", func() []byte { return set(books(get("/b/*c"))) }, grpcjson.Options{}, "; expected a path like /v1/books/{id}", "to path matcher"},
	{"* after **", func() []byte { return set(books(get("/b/**/c/*"))) }, grpcjson.Options{}, "; expected a path like /v1/books/{id}", "to path matcher"},
	{"an empty verb", func() []byte { return set(books(get("/b:"))) }, grpcjson.Options{}, "; expected a path like /v1/books/{id}", "to path matcher"},
	{"a variable that is not a field", func() []byte { return set(books(get("/b/{isbn}"))) }, grpcjson.Options{}, "the http rule of shop.Books.CallA names field isbn, which shop.Book lacks", ""},
	{"a body that is not a field", func() []byte { return set(books(`[google.api.http] { post: "/b" body: "text" }`)) }, grpcjson.Options{}, "names field text, which shop.Book lacks", "Cannot register 'shop.Books.CallA'"},
	{
		"a part of an answer", func() []byte { return set(books(`[google.api.http] { get: "/b" response_body: "id" }`)) }, grpcjson.Options{},
		"has response_body id, which Envoy takes only for a field of type google.api.HttpBody", "Cannot register 'shop.Books.CallA'",
	},
	{"a path of two rules", func() []byte { return set(books(get("/b/{id}"), get("/b/{shelf_mark.row}"))) }, grpcjson.Options{}, "the http rule of shop.Books.CallB has GET /b/{shelf_mark.row}, which is taken by shop.Books.CallA", ""},
	{
		"what Envoy adds, under another name", func() []byte {
			return set(books(get("/b")), `name: "google/protobuf/any.proto" package: "mine" syntax: "proto3" message_type { name: "Any" }`)
		}, grpcjson.Options{ConvertStatus: true}, "descriptor_set is not valid: ", "Unable to build proto descriptor pool",
	},
}

// sound are sets that are accepted.
var sound = []struct {
	what    string
	set     func() []byte
	options grpcjson.Options
}{
	{"as protoc writes it", testkit.BooksSet, grpcjson.Options{ConvertStatus: true}},
	{"with files in another order", func() []byte {
		return set(books(get("/b"))+` dependency: "z.proto"`, `name: "z.proto" syntax: "proto3" message_type { name: "Z" }`)
	}, grpcjson.Options{}},
	{"with all kinds of rules", func() []byte {
		return set(books(get("/b/{id}/c/{shelf_mark.row=x/*/**}:v"), `[google.api.http] { put: "/b/*/**" body: "shelf_mark" }`, `[google.api.http] { custom { kind: "HEAD" path: "/**" } }`,
			`[google.api.http] { patch: "/b/{shelfMark.row}" body: "*" additional_bindings { delete: "/a.b/{id}" } }`, `[google.api.http] { }`, ""))
	}, grpcjson.Options{}},
	{"with the path /", func() []byte { return set(books(get("/"))) }, grpcjson.Options{}},
	{"without rules, which are generated", func() []byte { return set(books("")) }, grpcjson.Options{AutoMapping: true}},
	{"with comments of its sources", func() []byte {
		return set(books(get("/b")) + ` source_code_info { location { path: 4 leading_comments: "a book" } }`)
	}, grpcjson.Options{}},
}

func withService(o grpcjson.Options) grpcjson.Options {
	if o.Services == nil {
		o.Services = []string{"shop.Books"}
	}
	return o
}

var _ = Describe("A descriptor set", func() {
	for _, f := range faulty {
		It("is refused with "+f.what, func() {
			_, err := grpcjson.Read(f.set(), withService(f.options))
			Expect(err).To(MatchError(ContainSubstring(f.says)))
		})
	}

	for _, s := range sound {
		It("is accepted "+s.what, func() {
			c, err := grpcjson.Read(s.set(), withService(s.options))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(c.Set)).NotTo(ContainSubstring("a book"))
		})
	}

	It("is refused if messages are nested more deeply than Envoy reads", func() {
		deep := strings.Repeat(`nested_type { name: "M" `, 40) + strings.Repeat("}", 40)
		_, err := grpcjson.Read(set(books(get("/b"))+` message_type { name: "Deep" `+deep+" }"), withService(grpcjson.Options{}))
		Expect(err).To(MatchError(ContainSubstring("descriptor_set is not a descriptor set")))
	})

	It("is refused if Envoy refuses it, and is accepted by Envoy in its rewritten form", func() {
		for _, f := range faulty {
			out, err := validate(f.set(), withService(f.options))
			if f.envoy == "" {
				Expect(err).NotTo(HaveOccurred(), "%s: %s", f.what, out)
				continue
			}
			Expect(err).To(HaveOccurred(), f.what)
			Expect(out).To(ContainSubstring(f.envoy), f.what)
		}
		for _, s := range sound {
			c, err := grpcjson.Read(s.set(), withService(s.options))
			Expect(err).NotTo(HaveOccurred())
			out, err := validate(c.Set, withService(s.options))
			Expect(err).NotTo(HaveOccurred(), "%s: %s", s.what, out)
		}
	})
})

// validate returns Envoy's output for a set.
func validate(set []byte, o grpcjson.Options) (out string, err error) {
	GinkgoHelper()
	type object = map[string]any
	const extensions = "type.googleapis.com/envoy.extensions.filters."
	binary, err := testkit.Binary("envoy")
	Expect(err).NotTo(HaveOccurred())
	config, err := json.Marshal(object{"static_resources": object{"listeners": []any{object{
		"name": "l", "address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 0}},
		"filter_chains": []any{object{"filters": []any{object{"name": "hcm", "typed_config": object{
			"@type": extensions + "network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "s", "route_config": object{},
			"http_filters": []any{
				object{"name": "json", "typed_config": object{
					"@type": extensions + "http.grpc_json_transcoder.v3.GrpcJsonTranscoder", "proto_descriptor_bin": base64.StdEncoding.EncodeToString(set),
					"services": o.Services, "auto_mapping": o.AutoMapping, "convert_grpc_status": o.ConvertStatus,
				}},
				object{"name": "router", "typed_config": object{"@type": extensions + "http.router.v3.Router"}},
			},
		}}}}},
	}}}})
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(GinkgoT().TempDir(), "envoy.json")
	Expect(os.WriteFile(path, config, 0o600)).To(Succeed())
	text, err := exec.Command(binary, "--mode", "validate", "-c", path, "-l", "error").CombinedOutput() //nolint:gosec,noctx // the pinned Envoy
	return string(text), err
}
