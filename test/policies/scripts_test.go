package policies_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// script returns the configuration of a filter with a script.
func script(text string) string {
	config, err := json.Marshal(object{"script": text})
	Expect(err).NotTo(HaveOccurred())
	return string(config)
}

// onRequest returns a script with the body of a hook.
func onRequest(body string) string { return "function envoy_on_request(h) " + body + " end" }

var _ = Describe("A script", func() {
	It("cannot leave its sandbox, block a worker, or let a request pass by failing", func() {
		w := newWorld(lua())
		w.attach(onShop)
		file := filepath.Join(GinkgoT().TempDir(), "file")
		Expect(os.WriteFile(file, []byte("secret"), 0o600)).To(Succeed())
		for _, try := range []struct {
			what, script string
			says         string // the status, and x-out as the backend received it
		}{
			{"adds a header", onRequest(`h:headers():add("x-out", "1")`), "200 1"},
			{"answers", onRequest(`h:respond({[":status"] = "418"}, "tea")`), "418 "},
			{"reads the body", onRequest(`local b = h:body() h:headers():add("x-out", b and tostring(b:length()) or "none")`), "200 none"},
			{"changes the answer only", `function envoy_on_response(h) h:headers():add("x-out", "1") end`, "200 "},
			{"does not end", onRequest(`while true do end`), "503 "},
			{"does not end when it is loaded", `function envoy_on_request() end while true do end`, "503 "},
			{"does not end behind the body", onRequest(`h:body() while true do end`), "503 "},
			{"does not end behind an answer of a cluster", onRequest(`h:httpCall("none", {[":method"] = "GET", [":path"] = "/", [":authority"] = "a"}, "", 100) while true do end`), "503 "},
			{"does not end in a comparison", onRequest(`table.sort({3, 2, 1}, function() while true do end end)`), "503 "},
			{"fails", onRequest(`error("no")`), "503 "},
			{"catches its end", onRequest(`pcall(function() while true do end end)`), "503 "},
			{"ends its text", "function envoy_on_request(h) end --\") os.exit(1) (\"", "200 "},
			{"is bytecode", "\x1bLJ\x02 function envoy_on_request(h) end", ""},
			{"reads a file", onRequest(`h:headers():add("x-out", io.open("` + file + `"):read())`), "503 "},
			{"runs a program", onRequest(`os.execute("echo >` + file + `.made")`), "503 "},
			{"calls libraries", onRequest(`require("ffi").C.abort()`), "503 "},
			{"looks for the rest of Lua", onRequest(`h:headers():add("x-out", tostring(debug) .. tostring(_G) .. tostring(getfenv) .. tostring(setmetatable) .. tostring(loadstring))`), "200 nilnilnilnilnil"},
			{"looks for it in a text", onRequest(`h:headers():add("x-out", tostring(("a").rep) .. tostring(("a").gsub) .. tostring(("a.c"):find(".")))`), "200 nilnil2"},
			{"takes its hook away", onRequest(`h.body = nil`), "503 "},
			{"sends a body before it decides", onRequest(`for c in h:bodyChunks() do error("no") end`), "503 "},
		} {
			By(try.what)
			a, err := w.api.Post(limit(), "/filter/f/config?wait=applied&timeout=30s", "Filter_config="+script(try.script))
			Expect(err).NotTo(HaveOccurred())
			if try.says == "" {
				Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
				continue
			}
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			got := w.send(request{what: try.what})
			Expect([]any{got.status, got.seen.Get("X-Out")}).To(HaveExactElements(says(try.says)...), got.body)
		}
		Expect(filepath.Glob(file + "*")).To(ConsistOf(file))
		Expect(w.send(request{what: "a host without the filter", host: "moved.test"}).status).To(Equal(http.StatusMovedPermanently))
	})

	DescribeTable("is refused before it is stored", func(flags []string, text, message string) {
		p := ipAccess()
		p.flags = flags
		w := newWorld(p)
		a, err := w.api.Post(limit(), "/filter", "Filter_name=script", "Filter_type=http_filter_lua", "Filter_config="+script(text))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
		Expect(a.Body).To(ContainSubstring(message))
	},
		Entry("if scripts are not allowed", nil, onRequest(""), `/filter/script cannot work: the gateway runs no scripts`),
		Entry("with a syntax error", []string{"--allow-lua"}, "function envoy_on_request(h)\n\n if then end", `its script has an error in line 3, at \"then\"`),
		Entry("that ends too early", []string{"--allow-lua"}, "function envoy_on_request(h)", `its script ends too early, after \")\"`),
		Entry("without a hook", []string{"--allow-lua"}, "local function envoy_on_request(h) end", `its script defines neither envoy_on_request nor envoy_on_response`),
	)
})

// says splits a text into a status and the rest.
func says(text string) []any {
	status, rest, _ := strings.Cut(text, " ")
	var n int
	Expect(json.Unmarshal([]byte(status), &n)).To(Succeed())
	return []any{n, rest}
}
