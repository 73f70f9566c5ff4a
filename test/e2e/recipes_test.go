package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// recipe is a section of a page of the documentation: a document, and requests with their expected answers.
type recipe struct{ name, document, requests string }

var section = regexp.MustCompile("(?s)\n### ([^\n]+)\n.*?```yaml\n(.*?)```\n```requests\n(.*?)```")

// recipes reads them where users do.
func recipes(page string) []recipe {
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		return nil // too few of them fail a spec
	}
	var list []recipe
	for _, m := range section.FindAllStringSubmatch(string(text), -1) {
		list = append(list, recipe{m[1], m[2], m[3]})
	}
	return list
}

// wanted matches a line of requests: "2 x POST /path from 127.0.0.2 with 10 bytes Name: value -> 200 name: value",
// with any number of headers in the request. The last header is that of the answer or, after "seen", that of the
// request at the upstream. A value that ends in "..." is a prefix; "none" means that the header is missing.
var wanted = regexp.MustCompile(`^(\d+) x (\S+) (\S+)(?: from (\S+))?(?: with (\d+) bytes)?((?: [\w-]+: .+?)?) +-> (\d+)(?: (seen )?([\w-]+): (.+))?$`)

var headerName = regexp.MustCompile(`([\w-]+): `)

// headersOf returns the names in a text, each followed by its value.
func headersOf(text string) (list []string) {
	names := headerName.FindAllStringSubmatchIndex(text, -1)
	for i, at := range names {
		end := len(text)
		if i+1 < len(names) {
			end = names[i+1][0]
		}
		list = append(list, text[at[2]:at[3]], strings.TrimSpace(text[at[1]:end]))
	}
	return list
}

// sendFrom sends a request from an address of this machine; empty means any. headers are names, each followed by its
// value; an empty name means no header.
func sendFrom(gw gateway, from, method, target string, headers ...string) (*http.Response, error) {
	resp, _, err := sendBody(gw, from, method, target, 0, headers...)
	return resp, err
}

// sendBody sends a request with a body of some bytes. It returns the request as the backend received it, if a
// backend answered.
func sendBody(gw gateway, from, method, target string, length int, headers ...string) (*http.Response, testkit.Echo, error) {
	dialer, seen := &net.Dialer{}, testkit.Echo{}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	client := &http.Client{
		Timeout:       testkit.Patience,
		Transport:     &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(context.Background(), method, fmt.Sprintf("http://127.0.0.1:%d%s", gw.port, target), strings.NewReader(strings.Repeat("x", length)))
	if err != nil {
		return nil, seen, err
	}
	req.Host = "shop.example"
	for pair := range slices.Chunk(headers, 2) {
		if pair[0] != "" {
			req.Header.Set(pair[0], pair[1])
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, seen, err
	}
	_ = json.NewDecoder(resp.Body).Decode(&seen) // otherwise no backend answered
	return resp, seen, resp.Body.Close()
}

// recipePages returns the filters' pages that have recipes. The specs of test/newcomer run login.md; those of gRPC, in
// test/policies, have real services.
func recipePages() []string {
	return slices.DeleteFunc(filterPages(), func(page string) bool {
		return slices.Contains([]string{"login.md", "grpcweb.md", "grpcjson.md"}, page)
	})
}

// filterPages returns the pages of docs/filters.md.
func filterPages() []string {
	text, err := os.ReadFile("../../docs/filters.md")
	if err != nil {
		panic(err) // before any spec
	}
	var list []string
	for _, m := range regexp.MustCompile("`]\\(([a-z]+\\.md)\\)").FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(list, m[1]) {
			list = append(list, m[1])
		}
	}
	return list
}

var _ = Describe("The page of a filter", func() {
	It("is found", func() { Expect(len(filterPages())).To(BeNumerically(">", 15)) })

	for _, page := range recipePages() {
		Describe("docs/"+page, func() {
			It("begins with commands that work", func() { tryCommands(page) })
			tryRecipes(page)
		})
	}

	Describe("of all filters, docs/refusals.md", func() { tryRecipes("refusals.md") })

	Describe("of none, docs/loadbalancing.md", func() {
		It("begins with commands that work", func() { tryCommands("loadbalancing.md") })
		tryRecipes("loadbalancing.md")
	})

	Describe("of several filters, docs/lists.md", func() {
		It("begins with commands that work", func() { tryCommands("lists.md") })
		tryRecipes("lists.md")
	})
})

// argsOf returns the arguments of the gateway for a page.
func argsOf(page string) []string {
	GinkgoHelper()
	switch page {
	case "lua.md":
		return []string{"--allow-lua"}
	case "ipaccess.md":
		dir := GinkgoT().TempDir()
		country, asn := filepath.Join(dir, "country.mmdb"), filepath.Join(dir, "asn.mmdb")
		Expect(testkit.WriteCountries(country, map[string]string{
			"127.0.0.2/32": "DE", "127.0.0.3/32": "DE", "127.0.0.4/32": "FR",
		})).To(Succeed())
		Expect(testkit.WriteNetworks(asn, map[string]uint32{"127.0.0.2/32": 64500, "127.0.0.3/32": 64501})).To(Succeed())
		return []string{"--geoip-country", country, "--geoip-asn", asn}
	}
	return nil
}

var commands = regexp.MustCompile("(?s)\n```\n(A=http://127.0.0.1:1323\\b.*?)\n```\n")

// tryCommands runs the first commands of a page. The answer to a request to the service is not checked.
func tryCommands(page string) {
	GinkgoHelper()
	_, gw, _ := shop(argsOf(page)...)
	addUpstream(gw.api, backend("green"))
	for _, route := range []string{"cart", "old", "upload"} {
		addRoute(gw.api, "shop", route, "/"+route, "", "blue")
	}
	text, err := os.ReadFile("../../docs/" + page)
	Expect(err).NotTo(HaveOccurred())
	block := commands.FindStringSubmatch(string(text))
	Expect(block).NotTo(BeNil())
	service := fmt.Sprintf("--no-fail-with-body -H Host:shop.example http://127.0.0.1:%d/", gw.port)
	script := "set -e\ncurl() { command curl -sS --fail-with-body \"$@\"; }\n" + strings.NewReplacer(
		"http://127.0.0.1:1323", gw.api.URL, "http://shop.example.com:8080/", service, "http://shop.example.com/", service).Replace(block[1])
	cmd := exec.CommandContext(limit(), "sh", "-c", script)
	cmd.Dir = GinkgoT().TempDir()
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", script, out)
}

// tryRecipes adds a spec for each recipe of a page.
func tryRecipes(page string) {
	It("has a recipe", func() { Expect(recipes(page)).NotTo(BeEmpty()) })

	for _, r := range recipes(page) {
		It("has a recipe that does what it says: "+r.name, func() {
			_, gw, _ := shop(argsOf(page)...)
			addUpstream(gw.api, backend("green"))
			processor, err := testkit.StartProcessor()
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(processor.Close)
			post(gw.api, "/upstream", "Upstream_name=processor", "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c", fmt.Sprint("Upstream_port=", processor.Port))
			a, err := gw.api.Do(limit(), http.MethodPut, "/config?wait=applied", "application/yaml", r.document)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			for line := range strings.Lines(r.requests) {
				tryLine(gw, line)
			}
		})
	}
}

// tryLine sends the requests of a line, and compares the answers.
func tryLine(gw gateway, line string) {
	GinkgoHelper()
	want := wanted.FindStringSubmatch(strings.TrimSpace(line))
	Expect(want).NotTo(BeNil(), line)
	times, err := strconv.Atoi(want[1])
	Expect(err).NotTo(HaveOccurred())
	length, _ := strconv.Atoi(want[5]) // none is none
	for i := range times {
		got, seen, err := sendBody(gw, want[4], want[2], want[3], length, headersOf(want[6])...)
		Expect(err).NotTo(HaveOccurred())
		Expect(strconv.Itoa(got.StatusCode)).To(Equal(want[7]), "request %d of %s", i+1, line)
		header := got.Header
		if want[8] != "" {
			header = http.Header{"Host": {seen.Host}}
			maps.Copy(header, seen.Headers)
		}
		switch value := header.Get(want[9]); {
		case want[9] == "":
		case want[10] == "none":
			Expect(value).To(BeEmpty(), line)
		case strings.HasSuffix(want[10], "..."):
			Expect(value).To(HavePrefix(strings.TrimSuffix(want[10], "...")), line)
		default:
			Expect(value).To(Equal(want[10]), line)
		}
	}
}
