package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// recipe is a section of a page of the documentation: a document, and what requests then
// get.
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

// wanted is a line of requests: "2 x GET /path from 127.0.0.2 Name: value -> 200 name: value", with
// any number of headers in the request.
var wanted = regexp.MustCompile(`^(\d+) x (\S+) (\S+)(?: from (\S+))?((?: [\w-]+: .+?)?) +-> (\d+)(?: ([\w-]+): (.+))?$`)

var headerName = regexp.MustCompile(`([\w-]+): `)

// headersOf are the names in a text, each with its value behind.
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

// sendFrom sends a request from an address of this machine; empty means any. headers are names, each
// with its value behind; an empty name is none.
func sendFrom(gw gateway, from, method, target string, headers ...string) (*http.Response, error) {
	dialer := &net.Dialer{}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}}
	req, err := http.NewRequestWithContext(context.Background(), method, fmt.Sprintf("http://127.0.0.1:%d%s", gw.port, target), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Host = "shop.example"
	for pair := range slices.Chunk(headers, 2) {
		if pair[0] != "" {
			req.Header.Set(pair[0], pair[1])
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	return resp, resp.Body.Close()
}

var (
	_ = Describe("A recipe of docs/ratelimit.md", func() {
		tryRecipes("ratelimit.md", "Per IP", "Per API key", "Per API client", "Per user", "Per path and method", "Burst and sustained together", "Global ceiling")
	})
	_ = Describe("A recipe of docs/ipaccess.md", func() { tryRecipes("ipaccess.md", "An office", "An admin area") })
	_ = Describe("A recipe of docs/jwt.md", func() { tryRecipes("jwt.md", "An API") })
	_ = Describe("A recipe of docs/basicauth.md", func() { tryRecipes("basicauth.md", "Users and administrators") })
	_ = Describe("A recipe of docs/rbac.md", func() { tryRecipes("rbac.md", "Readers and writers", "Staff writes") })
	_ = Describe("A recipe of docs/fault.md", func() { tryRecipes("fault.md", "A tester chooses") })
	_ = Describe("A recipe of docs/maintenance.md", func() { tryRecipes("maintenance.md", "A shop that is closed") })
	_ = Describe("A recipe of docs/extauthz.md", func() { tryRecipes("extauthz.md", "An admin area that is closed") })
	_ = Describe("A recipe of docs/cors.md", func() { tryRecipes("cors.md", "An application and its API") })
	_ = Describe("A recipe of docs/csrf.md", func() { tryRecipes("csrf.md", "A shop that browsers use") })
)

// tryRecipes has a spec for each recipe of a page.
func tryRecipes(page string, want ...string) {
	It("is there for each need", func() {
		var names []string
		for _, r := range recipes(page) {
			names = append(names, r.name)
		}
		Expect(names).To(Equal(want))
	})

	for _, r := range recipes(page) {
		It("does what the page says: "+r.name, func() {
			_, gw, _ := shop()
			a, err := gw.api.Do(limit(), http.MethodPut, "/config?wait=applied", "application/yaml", r.document)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			for line := range strings.Lines(r.requests) {
				want := wanted.FindStringSubmatch(strings.TrimSpace(line))
				Expect(want).NotTo(BeNil(), line)
				times, err := strconv.Atoi(want[1])
				Expect(err).NotTo(HaveOccurred())
				for i := range times {
					got, err := sendFrom(gw, want[4], want[2], want[3], headersOf(want[5])...)
					Expect(err).NotTo(HaveOccurred())
					Expect(strconv.Itoa(got.StatusCode)).To(Equal(want[6]), "request %d of %s", i+1, line)
					if want[7] != "" {
						Expect(got.Header.Get(want[7])).To(Equal(want[8]), line)
					}
				}
			}
		})
	}
}
