package attack_test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// body is a request body, with the expected answer.
type body struct {
	name         string
	method, path string
	contentType  string
	make         func() string
	status       int
	says         string
}

const megabyte = 1 << 20

// fillUp repeats text up to a size, between a beginning and an end.
func fillUp(begin, text, end string, size int) func() string {
	return func() string { return begin + strings.Repeat(text, (size-len(begin)-len(end))/len(text)) + end }
}

// config returns a filter as JSON, with a configuration of some size.
func config(kind, begin, text, end string) func() string {
	return func() string {
		inner := fillUp(begin, text, end, megabyte-200)()
		return fmt.Sprintf(`{"Filter_name":"f","Filter_type":%q,"Filter_config":%s}`, kind, inner)
	}
}

func documents() []body {
	const json, yaml = "application/json", "application/yaml"
	put := func(name, contentType, says string, text func() string) body {
		return body{name, http.MethodPut, "/config", contentType, text, http.StatusBadRequest, says}
	}
	return []body{
		put("empty objects", json, "the document contains errors", fillUp(`{"version":1,"services":[`, "{},", "{}]}", 39*megabyte/10)),
		put("empty objects in YAML", yaml, "more parts than", fillUp("version: 1\nservices: [", "{},", "{}]\n", 39*megabyte/10)),
		put("as many parts as are read", yaml, "the document contains errors", fillUp("version: 1\nproxies: [{name: a, services: [", "1,", "1]}]\n", 2_490_000)),
		put("16 MB of them", json, "the document contains errors", fillUp(`{"version":1,"services":[`, "{},", "{}]}", 16*megabyte)),
		put("16 MB of them in YAML", yaml, "more parts than", fillUp("version: 1\nservices:\n", "- {}\n", "", 16*megabyte)),
		put("routes of one service", json, "an object has more parts than 300000", fillUp(`{"version":1,"services":[{"service_name":"a","fqdn":"b.example","routes":[`, "{},", "{}]}]}", 16*megabyte)),
		put("names of one list", json, "an object has more parts than 300000", fillUp(`{"version":1,"proxies":[{"name":"a","services":[`, "1,", "1]}]}", 16*megabyte)),
		put("names of one list in YAML", yaml, "more parts than", fillUp("version: 1\nproxies: [{name: a, services: [", "1,", "1]}]\n", 16*megabyte)),
		put("parts of one field", json, "an object has more parts than 300000", fillUp(`{"version":1,"filters":[{"filter_name":"a","filter_type":"ratelimit","filter_config":{"descriptors":[`, "{},", "{}]}}]}", 16*megabyte)),
		put("unknown keys at the top", json, "the document contains errors", fillUp(`{"version":1`, `,"a":{}`, "}", 16*megabyte)),
		put("unknown keys of an object", json, "an object has more parts than 300000", fillUp(`{"version":1,"services":[{"fqdn":"a"`, `,"b":0`, "}]}", 16*megabyte)),
		put("deep nesting", json, "nests deeper than 64 levels", fillUp(`{"version":1,"services":`, "[", "", 16*megabyte)),
		put("deep nesting of objects", json, "nests deeper than 64 levels", fillUp(`{"version":1,"services":`, `{"a":`, "", 16*megabyte)),
		put("deep nesting in YAML", yaml, "", fillUp("version: 1\nservices: ", "[", "", 16*megabyte)),
		put("dashes in YAML", yaml, "", fillUp("version: 1\nservices:\n", "- ", "", 16*megabyte)),
		put("a key of 16 MB", json, "the document contains errors", fillUp(`{"version":1,"`, "a", `":[]}`, 16*megabyte)),
		put("a key of 16 MB in YAML", yaml, "", fillUp("version: 1\n", "a", ": []\n", 16*megabyte)),
		put("a name of 16 MB", json, "the document contains errors", fillUp(`{"version":1,"services":[{"service_name":"`, "a", `"}]}`, 16*megabyte)),
		put("aliases that multiply", yaml, "anchors (&) and aliases (*) are not supported", func() string {
			b := "version: 1\na: &a [x,x,x,x,x,x,x,x,x]\n"
			for c := 'b'; c <= 'i'; c++ {
				b += fmt.Sprintf("%[1]c: &%[1]c [*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c]\n", c, c-1)
			}
			return b
		}),
		put("a merge key", yaml, "merge keys (<<) are not supported", func() string { return "version: 1\nservices: [{<<: {fqdn: a}}]\n" }),
		put("no JSON", json, "the document cannot be read as JSON", fillUp("", "\x00\xff", "", 3*megabyte)),
		put("comments", yaml, "", fillUp("version: 2\n", "# a\n", "", 16*megabyte)),
		{"too much", http.MethodPut, "/config", yaml, fillUp("", "a", "", 16*megabyte+1), http.StatusRequestEntityTooLarge, "the body has more than 16 MiB"},
		{"a form", http.MethodPut, "/config", "application/x-www-form-urlencoded", fillUp("a=", "b", "", 100), http.StatusUnsupportedMediaType, "is not supported"},
	}
}

func objects() []body {
	const json, form = "application/json", "application/x-www-form-urlencoded"
	post := func(name, path, contentType string, status int, says string, text func() string) body {
		return body{name, http.MethodPost, path, contentType, text, status, says}
	}
	return []body{
		post("fields of a form", "/upstream", form, http.StatusBadRequest, "more than 1000 fields", fillUp("", "a&", "", megabyte)),
		post("different fields of a form", "/upstream", form, http.StatusBadRequest, "more than 1000 fields", func() string {
			var b strings.Builder
			for i := 0; b.Len() < megabyte-20; i++ {
				fmt.Fprintf(&b, "f%d=&", i)
			}
			return b.String()
		}),
		post("fields of JSON", "/upstream", json, http.StatusBadRequest, "more than 1000 fields", fillUp("{", `"":0,`, `"":0}`, megabyte)),
		post("parts of a multipart form", "/upstream", "multipart/form-data; boundary=b", http.StatusBadRequest, "more than 1000 fields",
			fillUp("", "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n", "--b--", megabyte)),
		post("descriptors of a filter", "/filter", json, http.StatusBadRequest, "", config("ratelimit", `{"descriptors":[`, "{},", "{}]}")),
		post("nested arrays of a filter", "/filter", json, http.StatusBadRequest, "", config("ratelimit", "", "[", "")),
		post("deep objects of a filter", "/filter", json, http.StatusBadRequest, "", config("ratelimit", "", `{"a":`, "")),
		post("keys of a filter", "/filter", json, http.StatusBadRequest, "", config("ratelimit", `{"descriptors":[]`, `,"a":1`, "}")),
		post("a text of a filter", "/filter", json, http.StatusBadRequest, "", config("ratelimit", `"`, "a", `"`)),
		post("conditions of a route", "/service/shop/route", json, http.StatusBadRequest, "",
			fillUp(`{"Route_Name":"r","Route_prefix":"/","Route_config":{"headers":[`, "{},", "{}]}}", megabyte)),
		post("tags", "/upstream", json, http.StatusBadRequest, "", fillUp(`{"Upstream_name":"u","Upstream_ip":"127.0.0.1","Upstream_port":"1","Tags":[`, `"",`, `""]}`, megabyte)),
		post("half an object", "/upstream", json, http.StatusBadRequest, "it ends early", fillUp(`{"Upstream_name":"`, "a", "", 1000)),
		post("text", "/upstream", "text/plain", http.StatusUnsupportedMediaType, "is not supported", fillUp("", "a", "", 1000)),
		post("too much", "/upstream", json, http.StatusRequestEntityTooLarge, "the body has more than 1 MiB", fillUp("", "a", "", megabyte+1)),
	}
}

// peak returns the gateway's peak memory since the last call, in MB.
func (t target) peak() int {
	GinkgoHelper()
	dir := "/proc/" + strconv.Itoa(t.Pid())
	text, err := os.ReadFile(dir + "/status")
	Expect(err).NotTo(HaveOccurred())
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(dir+"/clear_refs", []byte("5"), 0)).To(Succeed())
	return kilobytes / 1024
}

var _ = Describe("A body", func() {
	// A container of 512 MB must survive it.
	const most = 420 // MB

	var t target
	BeforeEach(func(ctx SpecContext) {
		GinkgoT().Setenv("GOMEMLIMIT", "358MiB") // the program's share of 512 MB
		t = startTarget(ctx)
	})

	tries := func(ctx SpecContext, list []body) {
		GinkgoHelper()
		for _, b := range list {
			before := t.peak()
			began := time.Now()
			a := try(ctx, t.API, b.method, b.path, b.make(), "Content-Type: "+b.contentType)
			took, after := time.Since(began).Round(time.Millisecond), t.peak()
			AddReportEntry(b.name, fmt.Sprintf("%s %s: %d, %s, %d MB, before %d MB", b.method, b.path, a.Status, took, after, before), ReportEntryVisibilityFailureOrVerbose)
			Expect(a.Status).To(Equal(b.status), "%s: %.500s", b.name, a.Body)
			Expect(a.Body).To(ContainSubstring(b.says), b.name)
			Expect(len(a.Body)).To(BeNumerically("<", 300_000), b.name)
			Expect(after).To(BeNumerically("<", most), b.name)
			Expect(took).To(BeNumerically("<", 25*time.Second), b.name)
		}
	}

	It("of PUT /config needs limited memory and time", func(ctx SpecContext) { tries(ctx, some(6, documents())) }, SpecTimeout(3*time.Minute))
	It("of an object does so too", func(ctx SpecContext) { tries(ctx, some(7, objects())) }, SpecTimeout(3*time.Minute))

	It("of a filter with a descriptor set does so too", func(ctx SpecContext) { tries(ctx, sets()) }, SpecTimeout(3*time.Minute))

	It("of PUT /config is applied one at a time, however many are sent", func(ctx SpecContext) {
		_ = t.peak()
		document := documents()[5].make()
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				defer GinkgoRecover()
				a := try(ctx, t.API, http.MethodPut, "/config", document, "Content-Type: application/json")
				Expect(a.Status).To(Or(Equal(http.StatusBadRequest), Equal(http.StatusTooManyRequests)), "%.300s", a.Body)
			})
		}
		group.Wait()
		Expect(t.peak()).To(BeNumerically("<", most))
	}, SpecTimeout(2*time.Minute))
})
