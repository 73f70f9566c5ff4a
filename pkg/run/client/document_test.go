package client_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// files writes files NAME, TEXT, ... and returns their directory.
func files(list ...string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	for i := 0; i < len(list); i += 2 {
		Expect(os.WriteFile(filepath.Join(dir, list[i]), []byte(list[i+1]), 0o600)).To(Succeed())
	}
	return dir
}

var _ = Describe("A document", func() {
	It("is sent unchanged if it is one file", func() {
		text := "# mine\nversion:   1\n"
		d, err := client.ReadDocument(client.Files{Paths: []string{filepath.Join(files("a.yaml", text), "a.yaml")}}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(d.Data)).To(Equal(text))

		d, err = client.ReadDocument(client.Files{Paths: []string{"-"}}, strings.NewReader(text))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(d.Data)).To(Equal(text))
	})

	It("is merged from a directory, section by section", func() {
		dir := files(
			"a.yaml", "version: 1\nupstreams:\n- upstream_name: blue\n  upstream_ip: 10.0.0.1 # here\n",
			"b.yml", "version: 1\nproxies:\n  - name: gw\nupstreams:\n  - {upstream_name: green, upstream_port: 80}\n",
			"c.json", `{"version":1,"upstreams":[{"upstream_name":"red"}],"services":null}`,
			"README.txt", "not this", ".hidden.yaml", "nor this",
		)
		d, err := client.ReadDocument(client.Files{Paths: []string{dir}}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Data).To(MatchYAML(`
version: 1
upstreams:
- {upstream_name: blue, upstream_ip: 10.0.0.1}
- {upstream_name: green, upstream_port: 80}
- {upstream_name: red}
proxies:
- name: gw
`))
	})

	It("keeps texts that look like numbers", func() {
		d, err := client.ReadDocument(client.Files{Paths: []string{files("a.yaml", "proxies: [{name: '007'}]\n", "b.yaml", "proxies: [{name: \"yes\"}]\n")}}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Data).To(MatchYAML(`proxies: [{name: "007"}, {name: "yes"}]`))
	})

	DescribeTable("that cannot be merged tells where", func(text, want string) {
		dir := files("a.yaml", "version: 1\n", "b.yaml", text)
		_, err := client.ReadDocument(client.Files{Paths: []string{dir}}, nil)
		Expect(err).To(MatchError(strings.ReplaceAll(want, "DIR", dir)))
	},
		Entry("different revisions", "revision: 2-a\n---\nrevision: 3-a\n", "DIR/b.yaml line 3: revision 3-a, where a file before it has revision 2-a"),
		Entry("different versions", "\nversion: 2\n", "DIR/b.yaml line 2: version 2, where a file before it has version 1"),
		Entry("not a list", "upstreams: 7\n", `DIR/b.yaml line 1: "upstreams" must be a list`),
		Entry("not a mapping", "- x\n", `DIR/b.yaml line 1: expected a configuration document, which begins with "version: 1"`),
		Entry("not YAML", "a: [\n", "DIR/b.yaml is not YAML: line 1: did not find expected node content"),
	)

	It("needs at least one file in a directory", func() {
		dir := files("x.txt", "")
		_, err := client.ReadDocument(client.Files{Paths: []string{dir}}, nil)
		Expect(err).To(MatchError("reading the configuration: the directory " + dir + " has no .yaml, .yml or .json file"))
	})

	It("is merged from subdirectories on request", func() {
		dir := files("z.yaml", "proxies: [{name: z}]\n")
		for _, sub := range []string{"a/b", ".git"} {
			Expect(os.MkdirAll(filepath.Join(dir, sub), 0o700)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(dir, sub, "x.yaml"), []byte("proxies: [{name: "+filepath.Base(sub)+"}]\n"), 0o600)).To(Succeed())
		}
		d, err := client.ReadDocument(client.Files{Paths: []string{dir}, Recursive: true}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Data).To(MatchYAML(`proxies: [{name: b}, {name: z}]`))

		d, err = client.ReadDocument(client.Files{Paths: []string{dir}}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Data).To(MatchYAML(`proxies: [{name: z}]`))

		above := filepath.Join(dir, "a")
		_, err = client.ReadDocument(client.Files{Paths: []string{above}}, nil)
		Expect(err).To(MatchError("reading the configuration: the directory " + above + " has no .yaml, .yml or .json file; --recursive reads the directories in it"))
	})

	It("maps errors of a merged document to places in its files", func(ctx SpecContext) {
		dir := files(
			"a.yaml", "# a comment\n\nupstreams:\n- upstream_name: blue\n",
			"b.yaml", "\n\n\nupstreams:\n\n  - upstream_name: green\n    # why\n    upstream_port: 70000\n",
		)
		d, err := client.ReadDocument(client.Files{Paths: []string{dir}}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(d.Data)).To(Equal("upstreams:\n    - upstream_name: blue\n    - upstream_name: green\n      # why\n      upstream_port: 70000\n"))
		c := serverOf(client.Options{}, func(w http.ResponseWriter, r *http.Request) {
			Expect(r.Method + " " + r.URL.String()).To(Equal("PUT /config?dry_run=true&prune=true&tag=t"))
			Expect(r.Header.Get("Content-Type")).To(Equal("application/yaml"))
			_, err := io.Copy(io.Discard, r.Body)
			Expect(err).NotTo(HaveOccurred())
			answer(w, 400, "application/problem+json", `{"detail":"line 2 is good","code":"invalid_fields",
				"errors":[{"field":"upstreams[1].upstream_port","message":"line 5: is not a port; see line 99"}]}`)
		})
		_, _, err = c.ApplyConfig(ctx, d, client.Apply{DryRun: true, Prune: true, Tag: "t"})
		Expect(err).To(MatchError("PUT /config: " + dir + "/a.yaml line 4 is good (400 invalid_fields)\n" +
			"  upstreams[1].upstream_port: " + dir + "/b.yaml line 8: is not a port; see line 99"))
	})
})

var _ = Describe("The contexts file", func() {
	It("is readable by its owner only, and reads back", func() {
		path := filepath.Join(GinkgoT().TempDir(), "config", "gatehouse", "contexts.yaml")
		var c client.Contexts
		c.Set(client.Context{Name: "prod", Server: "https://prod", TokenFile: "/t"})
		c.Set(client.Context{Name: "dev", Server: "http://old"})
		c.Set(client.Context{Name: "dev", Server: "http://dev"})
		c.Current = "prod"
		Expect(c.Write(path)).To(Succeed())
		Expect(os.ReadFile(path)).To(BeEquivalentTo(`current: prod
contexts:
    - name: dev
      server: http://dev
    - name: prod
      server: https://prod
      token_file: /t
`))
		info, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))

		read, err := client.ReadContexts(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(read).To(Equal(c))
		Expect(read.Delete("prod")).To(Succeed())
		Expect(read.Current).To(BeEmpty())
		Expect(read.Delete("prod")).To(MatchError(`context "prod" does not exist; the contexts are dev`))
		Expect(os.ReadDir(filepath.Dir(path))).To(HaveLen(1))
	})

	It("may be missing or empty, but must be valid", func() {
		Expect(client.ReadContexts(filepath.Join(GinkgoT().TempDir(), "none"))).To(Equal(client.Contexts{}))
		dir := files("empty", "", "bad", "contexts:\n- nome: x\n")
		Expect(client.ReadContexts(filepath.Join(dir, "empty"))).To(Equal(client.Contexts{}))
		_, err := client.ReadContexts(filepath.Join(dir, "bad"))
		Expect(err).To(MatchError(And(ContainSubstring("nome"), ContainSubstring("line 2"))))
	})

	DescribeTable("is where the XDG variables say", func(xdg, home, want string) {
		env := map[string]string{"XDG_CONFIG_HOME": xdg, "HOME": home}
		Expect(client.ContextsPath(func(k string) string { return env[k] })).To(Equal(want))
	},
		Entry(nil, "/xdg", "/home/ann", "/xdg/gatehouse/contexts.yaml"),
		Entry(nil, "relative", "/home/ann", "/home/ann/.config/gatehouse/contexts.yaml"),
		Entry(nil, "", "", ""),
	)
})

var _ = Describe("The server that is called", func() {
	contexts := client.Contexts{Current: "cur", Contexts: []client.Context{
		{Name: "cur", Server: "http://cur", TokenFile: "/cur"}, {Name: "other", Server: "http://other", TokenFile: "/other"},
	}}
	DescribeTable("comes from flags, then the environment, then the current context",
		func(flags client.Selection, env map[string]string, c client.Contexts, server, token string) {
			s, err := client.Resolve(flags, func(k string) string { return env[k] }, c)
			Expect(err).NotTo(HaveOccurred())
			Expect([]string{s.Server, s.TokenFile}).To(Equal([]string{server, token}))
		},
		Entry("nothing", client.Selection{}, nil, client.Contexts{}, "http://127.0.0.1:1323", ""),
		Entry("the current context", client.Selection{}, nil, contexts, "http://cur", "/cur"),
		Entry("the environment", client.Selection{}, map[string]string{"GATEHOUSE_SERVER": "http://env", "GATEHOUSE_TOKEN_FILE": "/env"}, contexts, "http://env", "/env"),
		Entry("a context of the environment", client.Selection{}, map[string]string{"GATEHOUSE_CONTEXT": "other"}, contexts, "http://other", "/other"),
		Entry("flags", client.Selection{Server: "http://flag", TokenFile: "/flag"}, map[string]string{"GATEHOUSE_SERVER": "http://env", "GATEHOUSE_TOKEN_FILE": "/env"}, contexts, "http://flag", "/flag"),
		Entry("a context flag over the environment", client.Selection{Context: "other"}, map[string]string{"GATEHOUSE_SERVER": "http://env", "GATEHOUSE_TOKEN_FILE": "/env"}, contexts, "http://other", "/other"),
		Entry("the token of a context goes nowhere else", client.Selection{Server: "http://flag"}, nil, contexts, "http://flag", ""),
		Entry("only the token of the environment", client.Selection{}, map[string]string{"GATEHOUSE_TOKEN_FILE": "/env"}, contexts, "http://cur", "/env"),
	)

	DescribeTable("has authorities from the same places",
		func(flags client.Selection, env, want string) {
			c := client.Contexts{Current: "cur", Contexts: []client.Context{{Name: "cur", Server: "https://cur", CAFile: "/cur.pem"}}}
			s, err := client.Resolve(flags, func(k string) string { return map[string]string{"GATEHOUSE_CA_FILE": env}[k] }, c)
			Expect(err).NotTo(HaveOccurred())
			Expect(s.CAFile).To(Equal(want))
		},
		Entry("the context's", client.Selection{}, "", "/cur.pem"),
		Entry("the environment's", client.Selection{}, "/env.pem", "/env.pem"),
		Entry("the flag's", client.Selection{CAFile: "/flag.pem"}, "/env.pem", "/flag.pem"),
		Entry("not the context's for another server", client.Selection{Server: "https://flag"}, "", ""),
	)

	It("is an error that names the contexts, if the context does not exist", func() {
		none := func(string) string { return "" }
		_, err := client.Resolve(client.Selection{Context: "x"}, none, contexts)
		Expect(err).To(MatchError(`context "x" does not exist; the contexts are cur, other`))
		_, err = client.Resolve(client.Selection{Context: "x"}, none, client.Contexts{})
		Expect(err).To(MatchError(`context "x" does not exist, nor does any other; create it with gatehouse context set x --server URL`))
	})

	It("accepts a token file with one line", func() {
		dir := files("t", "abc\n", "empty", "\n")
		Expect(client.ReadToken("")).To(BeEmpty())
		Expect(client.ReadToken(filepath.Join(dir, "t"))).To(Equal("abc"))
		_, err := client.ReadToken(filepath.Join(dir, "empty"))
		Expect(err).To(MatchError(ContainSubstring("is empty")))
	})
})
