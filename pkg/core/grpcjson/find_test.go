package grpcjson_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/grpcjson"
)

var _ = Describe("A request", func() {
	// CallA to CallH.
	calls := func(o grpcjson.Options) *grpcjson.Calls {
		GinkgoHelper()
		c, err := grpcjson.Read(set(books(get("/b/{id}"), get("/b/all"), get("/b/{id}:sell"), get("/f/**"), get("/f/{id=x/**}/end"),
			`[google.api.http] { custom { kind: "*" path: "/any" } additional_bindings { get: "/any" } }`, `[google.api.http] { post: "/b" body: "*" }`, get("/f/x/y"))), withService(o))
		Expect(err).NotTo(HaveOccurred())
		return c
	}
	const call = "/shop.Books/Call"

	DescribeTable("calls the method of the rule", func(method, path, want string) {
		got, refused := calls(grpcjson.Options{}).Find(method, path, "")
		if want == "" {
			Expect(refused).To(HaveValue(HaveField("Status", 404)))
			return
		}
		Expect(refused).To(BeNil())
		Expect(got).To(Equal(call + want))
	},
		Entry("with a variable", "GET", "/b/1", "A"),
		Entry("with a variable, before a slash", "GET", "/b/1/", "A"),
		Entry("with fixed text", "GET", "/b/all", "B"),
		Entry("with a verb", "GET", "/b/1:sell", "C"),
		Entry("with a variable that contains a colon without a verb", "GET", "/b/1:lend", "A"),
		Entry("with any segments", "GET", "/f/a/b/c", "D"),
		Entry("with none of any segments", "GET", "/f", "D"),
		Entry("with any segments before an end", "GET", "/f/x/1/2/end", "E"),
		Entry("with fixed text before any segments", "GET", "/f/x/y", "H"),
		Entry("with any method", "PROPFIND", "/any", "F"),
		Entry("with a body", "POST", "/b", "G"),
		Entry("unless the method is another one", "PUT", "/b", ""),
		Entry("unless the path is shorter", "GET", "/b", ""),
		Entry("unless the path is longer", "GET", "/b/1/2", ""),
		Entry("unless a segment is empty", "GET", "//b/1", ""),
		Entry("unless the path is the root", "GET", "/", ""),
	)

	DescribeTable("has query parameters", func(query string, o grpcjson.Options, refused string) {
		_, no := calls(o).Find("GET", "/b/1", query)
		if refused == "" {
			Expect(no).To(BeNil())
			return
		}
		Expect(no).To(HaveValue(Equal(grpcjson.Refusal{Status: 400, Message: "query parameter " + refused + " is not a field of shop.Book"})))
	},
		Entry("that are fields", "id=1&shelf_mark.row=2&shelfMark.row=3", grpcjson.Options{}, ""),
		Entry("without values", "x&=1&&id=", grpcjson.Options{}, ""),
		Entry("that are not fields", "id=1&isbn=2", grpcjson.Options{}, "isbn"),
		Entry("that are not fields of a field", "id.row=1", grpcjson.Options{}, "id.row"),
		Entry("that are ignored", "isbn=2", grpcjson.Options{Ignored: []string{"isbn"}}, ""),
		Entry("that are not ignored", "isbn=2&x=1", grpcjson.Options{Ignored: []string{"isbn"}}, "x"),
		Entry("that are all ignored", "isbn=2&x=1", grpcjson.Options{IgnoreUnknown: true}, ""),
	)
})

var _ = Describe("A path", func() {
	read := func(options ...string) *grpcjson.Calls {
		GinkgoHelper()
		c, err := grpcjson.Read(set(books(options...)), withService(grpcjson.Options{}))
		Expect(err).NotTo(HaveOccurred())
		return c
	}

	It("is not overridden by query parameters, however they are spelled", func() {
		c := read(get("/b/{shelfMark.row}"), `[google.api.http] { put: "/b/{shelf_mark.row}/x" body: "*" }`)
		Expect(c.Overriding).To(BeEmpty())
		Expect(c.Ignored).To(HaveExactElements("shelfMark.row", "shelf_mark.row"))
	})

	It("is overridden by parameters that another rule needs, which is reported", func() {
		c := read(get("/b/{id}/{shelf_mark.row}"), `[google.api.http] { post: "/b" body: "shelf_mark" }`, get("/c/{shelfMark.row}"))
		Expect(c.Ignored).To(HaveExactElements("shelfMark.row", "shelf_mark.row"))
		Expect(c.Overriding).To(HaveExactElements("the query parameter id takes the place of what the path of GET /b/{id}/{shelf_mark.row} says: POST /b needs it too"))
	})
})
