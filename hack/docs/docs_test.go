package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/hack/pack"
)

func TestDocs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The site of the documentation")
}

// forest is a repository of a few files.
func forest(name string) (file, dir bool) {
	return slices.Contains([]string{"go.mod", "test", "test/a_test.go", "docs/adr", "docs/adr/README.md"}, name),
		slices.Contains([]string{"test", "docs/adr"}, name)
}

var _ = Describe("A page", func() {
	sources := map[string][]byte{
		"README.md": nil, "docs/README.md": nil, "docs/a.md": nil, "docs/adr/0001-x.md": nil, "docs/p.svg": nil,
		"charts/gatehouse/README.md": nil,
	}
	DescribeTable("has links that lead somewhere on the site", func(source, link, want string) {
		page, dead := forSite("see ["+"x]("+link+")", source, sources, forest)
		Expect(dead).To(BeEmpty())
		Expect(page).To(Equal("see [x](" + want + ")\n"))
	},
		Entry("to a page", "docs/a.md", "adr/0001-x.md#y", "adr/0001-x.md#y"),
		Entry("to the README", "docs/a.md", "../README.md#settings", "overview.md#settings"),
		Entry("from the README", "README.md", "docs/a.md", "a.md"),
		Entry("from a page that is deep elsewhere", "charts/gatehouse/README.md", "../../docs/adr/0001-x.md", "adr/0001-x.md"),
		Entry("from a page in a folder", "docs/adr/0001-x.md", "../../README.md", "../overview.md"),
		Entry("to a picture", "docs/a.md", "p.svg", "p.svg"),
		Entry("to itself", "docs/a.md", "#y", "#y"),
		Entry("to a file of the repository", "docs/a.md", "../test/a_test.go", "https://github.com/gatehouse-gateway/gatehouse/blob/main/test/a_test.go"),
		Entry("to a folder", "docs/a.md", "adr", "https://github.com/gatehouse-gateway/gatehouse/tree/main/docs/adr"),
		Entry("to elsewhere", "docs/a.md", "https://www.envoyproxy.io", "https://www.envoyproxy.io"),
	)

	DescribeTable("has no dead link", func(source, link string) {
		_, dead := forSite("see ["+"x]("+link+")", source, sources, forest)
		Expect(dead).To(Equal([]string{source + ": " + link}))
	},
		Entry("to a page", "docs/a.md", "b.md"),
		Entry("to a file", "docs/a.md", "../test/b_test.go"),
		Entry("out of the repository", "docs/a.md", "../../go.mod"),
	)

	DescribeTable("looks as on a forge", func(text, want string) {
		page, _ := forSite(text, "docs/a.md", sources, forest)
		Expect(page).To(Equal(want))
	},
		Entry("a list after a paragraph", "Reasons:\n- a\n- b\n  more\n- c\n", "Reasons:\n\n- a\n- b\n  more\n- c\n"),
		Entry("a numbered list after a paragraph", "Steps:\n1. a\n2. b\n", "Steps:\n\n1. a\n2. b\n"),
		Entry("a number that begins a line", "It answers\n422. Then\n", "It answers\n422. Then\n"),
		Entry("an inner list", "- a\n  - b\n", "- a\n    - b\n"),
		Entry("a table after a paragraph", "Fields:\n| a |\n|---|\n| b |\n", "Fields:\n\n| a |\n|---|\n| b |\n"),
		Entry("text in a fence", "x\n\n```\ny\n- [x](nope)\n| a |\n```\n", "x\n\n```\ny\n- [x](nope)\n| a |\n```\n"),
		Entry("a fence after a paragraph or a fence", "x\n```yaml\n```\n```\n```\n", "x\n\n```yaml\n```\n\n```\n```\n"),
	)
})

var _ = Describe("The navigation", func() {
	It("is the list of the start page", func() {
		type m = map[string]any
		Expect(navigation("# T\n- [no](no.md)\n## Start\n- [A](../README.md#x): what\n  [not this](n.md)\n## How to\ntext\n### TLS\n- [B](b.md): b, [c](c.md)\n### Limits\n- [D](adr/README.md)\n## End\n- [E](e.md)\n")).To(Equal([]any{
			m{"Start": []any{m{"Documentation": "README.md"}, m{"A": "overview.md"}}},
			m{"How to": []any{m{"TLS": []any{m{"B": "b.md"}}}, m{"Limits": []any{m{"D": "adr/README.md"}}}}},
			m{"End": []any{m{"E": "e.md"}}},
		}))
	})
})

var _ = Describe("A finished site", func() {
	It("has no script within a page, and nothing that no reader needs", func() {
		done := finish(map[string][]byte{
			"a/b.html":                       []byte("<p><script>x=1</script><script type=\"application/json\">{}</script><script src=\"y.js\"></script>"),
			"404.html":                       []byte(`<a href="/a/b.html"><script src="/y.js"></script><script>x=1</script>{"base": "/"}`),
			"y.js":                           []byte("y\n//# sourceMappingURL=y.js.map\n"),
			"y.css":                          []byte("z{}\n/*# sourceMappingURL=y.css.map */"),
			"y.js.map":                       nil,
			"sitemap.xml.gz":                 nil,
			"assets/javascripts/lunr/min.js": nil,
		})
		text := map[string]string{}
		for name, content := range done {
			text[name] = string(content)
		}
		file := "assets/inline/1f206b11c23e28cc.js" // of the sum of x=1
		Expect(text).To(Equal(map[string]string{
			"a/b.html": `<p><script src="../` + file + `"></script><script type="application/json">{}</script><script src="y.js"></script>`,
			"404.html": `<a href="/docs/a/b.html"><script src="/docs/y.js"></script><script src="/docs/` + file + `"></script>{"base": "/docs/"}`,
			"y.js":     "y\n", "y.css": "z{}", file: "x=1",
		}))
	})

	DescribeTable("is refused", func(page string, want ...string) {
		Expect(check(map[string][]byte{
			"index.html": []byte(`<h1 id="top">x</h1><a href="a/b.html#x">`), "a/b.html": []byte(`<h1 id="x"></h1>` + page), "a/p.png": {1},
		})).To(HaveExactElements(want))
	},
		Entry("not if all is there", `<a href="../index.html#top"><a href=".."><a href="#x"><img src="p.png"><a href="https://a.example"><a href="/docs/api/"><a href="/docs/index.html">`),
		Entry("a page that does not exist", `<a class=x href="c.html">`, "a/b.html links to c.html, which does not exist"),
		Entry("a heading that does not exist", `<a href="../index.html#y">`, "a/b.html links to ../index.html#y, which has no such heading"),
		Entry("a heading of the page itself", `<a href="#y">`, "a/b.html links to #y, which has no such heading"),
		Entry("a picture that does not exist", `<img alt="" src="q.png"/>`, "a/b.html links to q.png, which does not exist"),
		Entry("a font from elsewhere", `<link rel="stylesheet" href="https://fonts.example/a.css">`, "a/b.html loads https://fonts.example/a.css"),
		Entry("a script from elsewhere", `<script src="//cdn.example/a.js">`, "a/b.html loads //cdn.example/a.js"),
		Entry("a script in the page", `<script>1</script>`, "a/b.html has a script within the page"),
		Entry("a script in an attribute", `<p onclick="x()">`, "a/b.html has a script in the attribute onclick"),
	)

	It("loads no style from elsewhere", func() {
		Expect(check(map[string][]byte{"a.css": []byte(`a{b:url("data:image/svg+xml,//")} @import "https://f.example/x"; c{d:url(//g.example/y)}`)})).
			To(Equal([]string{"a.css loads //g.example/y", "a.css loads https://f.example/x"}))
	})
})

var _ = Describe("The site", Ordered, func() {
	var files map[string][]byte

	BeforeAll(func() {
		var err error
		files, err = build("../..", GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
	})

	It("is the same, byte by byte, from another folder", func() {
		root := filepath.Join(GinkgoT().TempDir(), "elsewhere", "copy")
		sources, err := filepath.Abs("../..")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.MkdirAll(root, 0o750)).To(Succeed())
		entries, err := os.ReadDir(sources)
		Expect(err).NotTo(HaveOccurred())
		for _, entry := range entries {
			if entry.Name() == "docs" {
				Expect(os.CopyFS(filepath.Join(root, "docs"), os.DirFS(filepath.Join(sources, "docs")))).To(Succeed())
			} else {
				Expect(os.Symlink(filepath.Join(sources, entry.Name()), filepath.Join(root, entry.Name()))).To(Succeed())
			}
		}
		again, err := build(root, GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		one, err := pack.Zip(files)
		Expect(err).NotTo(HaveOccurred())
		two, err := pack.Zip(again)
		Expect(err).NotTo(HaveOccurred())
		Expect(sha256.Sum256(one)).To(Equal(sha256.Sum256(two)))
		Expect(len(one)).To(BeNumerically("<", 2_500_000), "it is a part of the program")
	})

	// A click is a link in the text of a page: neither the menu nor the search counts.
	It("has each page within two clicks of the start page", func() {
		reached := map[string]bool{"index.html": true}
		for range 2 {
			var next []string
			for page := range reached {
				next = append(next, linked(page, files[page])...)
			}
			for _, page := range next {
				reached[page] = true
			}
		}
		var far []string
		for name := range files {
			if strings.HasSuffix(name, ".html") && name != "404.html" && name != "adr/0000-template.html" && !reached[name] {
				far = append(far, name)
			}
		}
		Expect(far).To(BeEmpty(), "name them in docs/README.md")
		Expect(len(reached)).To(BeNumerically(">", 180))
	})

	// The script that searches in a browser does it here.
	It("finds each feature by its names in Kong, APISIX, Traefik and Envoy Gateway", func() {
		dir := GinkgoT().TempDir()
		var args []string
		for name := range files {
			if strings.HasPrefix(name, "assets/javascripts/workers/") {
				args = []string{"search.js", filepath.Join(dir, "worker.js"), filepath.Join(dir, "index.json")}
				Expect(os.WriteFile(args[1], files[name], 0o600)).To(Succeed())
				Expect(os.WriteFile(args[2], files["search/search_index.json"], 0o600)).To(Succeed())
			}
		}
		table, err := os.ReadFile("../../docs/coming-from.md")
		Expect(err).NotTo(HaveOccurred())
		wanted := map[string][]string{}
		var names []string
		for _, row := range regexp.MustCompile(`(?m)^\| (.*) \|$`).FindAllStringSubmatch(string(table), -1) {
			columns := strings.Split(row[1], " | ")
			if len(columns) < 6 {
				continue // another table
			}
			page := regexp.MustCompile(`\]\((\w+)\.md`).FindStringSubmatch(columns[5])
			for _, name := range regexp.MustCompile("`([A-Za-z][\\w.-]*)`").FindAllStringSubmatch(strings.Join(columns[1:5], " "), -1) {
				if page != nil && !strings.HasSuffix(name[1], "...") {
					wanted[name[1]] = append(wanted[name[1]], page[1]+".html")
					names = append(names, name[1])
				}
			}
		}
		Expect(len(wanted)).To(BeNumerically(">", 100))
		queries, err := json.Marshal(names)
		Expect(err).NotTo(HaveOccurred())
		cmd := exec.CommandContext(context.Background(), "../../bin/clients/bin/node", args...)
		cmd.Stdin = bytes.NewReader(queries)
		out, err := cmd.Output()
		Expect(err).NotTo(HaveOccurred(), "make clients fetches Node")
		found := map[string][]string{}
		Expect(json.Unmarshal(out, &found)).To(Succeed())
		var lost []string
		for name, pages := range wanted {
			for _, page := range pages {
				if best := found[name]; !slices.Contains(best[:min(5, len(best))], page) {
					lost = append(lost, name+" finds "+strings.Join(best[:min(5, len(best))], " ")+", not "+page)
				}
			}
		}
		Expect(lost).To(BeEmpty())
	})
})
