package main

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const applied = `{"data":{"created":1,"updated":1,"deleted":1,"unchanged":5,"changes":[
	{"action":"create","path":"/upstream/blue","kind":"upstream","fields":[{"field":"upstream_port","before":null,"after":80}]},
	{"action":"update","path":"/service/shop","kind":"service","fields":[{"field":"fqdn","before":"a.example","after":"b.example"}]},
	{"action":"delete","path":"/proxy/gw","kind":"proxy","fields":[]}],
	"warnings":["secret \"tls\" is a reference and has no value yet"]}}`

const lines = "+ /upstream/blue\n    upstream_port: 80\n~ /service/shop\n    fqdn: \"a.example\" -> \"b.example\"\n- /proxy/gw\n"

const warning = "warning: secret \"tls\" is a reference and has no value yet\n"

var _ = Describe("apply", func() {
	It("sends a document and says what changed", func() {
		f := serving("PUT /config?prune=true&tag=shop", reply{200, applied, map[string]string{"Gatehouse-Revision": "8"}})
		Expect(run1("version: 1\n", "apply", "-f", "-", "--prune", "--tag", "shop", "-o", "table")).To(Equal(result{
			0, lines + "1 created, 1 updated, 1 deleted, 5 unchanged (revision 8)\n", warning,
		}))
		Expect(f.bodies).To(Equal([]string{"version: 1\n"}))
		Expect(f.headers.Get("Content-Type")).To(Equal("application/yaml"))
	})

	It("sends JSON as JSON, and prints JSON in a pipe", func() {
		f := serving("PUT /config", reply{200, `{"data":{"created":0,"updated":0,"deleted":0,"unchanged":5,"changes":[],"warnings":[]}}`, nil})
		Expect(run1(`{"version":1}`, "apply", "-f", "-").stdout).To(MatchJSON(`{"created":0,"updated":0,"deleted":0,"unchanged":5,"changes":[],"warnings":[]}`))
		Expect(f.headers.Get("Content-Type")).To(Equal("application/json"))
	})

	It("sends the files of a directory as one document, also in a dry run", func() {
		f := serving("PUT /config?dry_run=true", reply{200, applied, nil})
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("version: 1\nproxies: [{name: gw}]\n"), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "b.yaml"), []byte("proxies: [{name: edge}]\n"), 0o600)).To(Succeed())
		r := run1("", "apply", "-f", dir, "--dry-run", "-o", "table")
		Expect(r.stdout).To(HaveSuffix("1 to create, 1 to update, 1 to delete, 5 unchanged\n"))
		Expect(f.bodies).To(ConsistOf(MatchYAML("version: 1\nproxies: [{name: gw}, {name: edge}]")))
	})

	It("lists the files of a directory that it does not send", func() {
		serving("PUT /config?dry_run=true", reply{200, applied, nil})
		dir := GinkgoT().TempDir()
		Expect(os.MkdirAll(filepath.Join(dir, "team", "a"), 0o700)).To(Succeed())
		Expect(os.Symlink("team", filepath.Join(dir, "link"))).To(Succeed())
		for _, name := range []string{"a.yaml", "team/b.yaml", "team/a/c.yaml", ".hidden", "1.txt", "2.txt", "3.txt", "4.txt", "5.txt", "6.txt"} {
			Expect(os.WriteFile(filepath.Join(dir, name), []byte("version: 1\n"), 0o600)).To(Succeed())
		}
		others := "skipped " + strings.ReplaceAll("DIR/1.txt, DIR/2.txt, DIR/3.txt, DIR/4.txt, DIR/5.txt and 1 more: only .yaml, .yml and .json files are read\n", "DIR", dir)
		links := "skipped " + dir + "/link: links to directories are not followed\n"
		for _, command := range []string{"apply", "diff"} {
			args := []string{command, "-f", dir}
			if command == "apply" {
				args = append(args, "--dry-run")
			}
			Expect(run1("", args...).stderr).To(Equal("skipped "+dir+"/team: directories below a directory are read only with -R\n"+links+others+warning), command)
			Expect(run1("", append(args, "-R")...).stderr).To(Equal(links+others+warning), command)
		}
	})

	It("names every bad field", func() {
		serving("PUT /config", reply{400, `{"detail":"1 field is missing or wrong; see errors","code":"invalid_fields","errors":[{"field":"upstreams[0].upstream_port","message":"line 4: is not a port"}]}`, nil})
		Expect(run1("version: 1\n", "apply", "-f", "-")).To(Equal(result{1, "",
			"gatehouse: PUT /config: 1 field is missing or wrong (400 invalid_fields)\n  upstreams[0].upstream_port: line 4: is not a port\n"}))
		Expect(run1("", "apply", "-f", "/not/there.yaml")).To(Equal(result{1, "",
			"gatehouse: reading the configuration: stat /not/there.yaml: no such file or directory\n"}))
	})
})

var _ = Describe("diff", func() {
	It("shows what would change", func() {
		f := serving("PUT /config?dry_run=true", reply{200, applied, nil})
		const table = lines + "1 to create, 1 to update, 1 to delete, 5 unchanged\n"
		Expect(run1("version: 1\n", "diff", "-f", "-", "-o", "table")).To(Equal(result{0, table, warning}))
		Expect(run1("version: 1\n", "diff", "-f", "-", "-o", "table", "--exit-code")).To(Equal(result{1, table, warning}))
		Expect(run1("version: 1\n", "diff", "-f", "-").stdout).To(ContainSubstring(`"path": "/upstream/blue"`), "JSON in a pipe")
		f.answers["PUT /config?dry_run=true"] = reply{200, `{"data":{"dry_run":true,"changes":[]}}`, nil}
		Expect(run1("version: 1\n", "diff", "-f", "-", "-o", "table", "--exit-code")).To(Equal(result{0, "no changes\n", ""}))
	})

	It("shows each value that changes, where it is, and of a new object what is neither empty nor the default", func() {
		serving("PUT /config?dry_run=true", reply{200, `{"data":{"created":1,"updated":1,"deleted":1,"unchanged":0,"changes":[
			{"action":"create","path":"/upstream/blue","kind":"upstream","fields":[{"field":"upstream_port","after":80},{"field":"upstream_weight","after":100,"default":true},{"field":"upstream_protocol","after":"h2c"},{"field":"upstream_hc_host","after":""},{"field":"tags","after":[]}]},
			{"action":"delete","path":"/upstream/red","kind":"upstream","fields":[{"field":"upstream_port","before":81},{"field":"upstream_weight","before":100,"default":true},{"field":"upstream_max_pending","before":1},{"field":"upstream_hc_host","before":""}]},
			{"action":"update","path":"/filter/cors","kind":"filter","fields":[{"field":"filter_config",
				"before":{"origins":["https://a","https://b","https://c"],"age":5,"rules":[{"paths":["/a"]},{"paths":["/b"]}]},
				"after":{"origins":["https://a","https://x","https://y","https://c"],"credentials":true,"rules":[{"paths":["/a"]},{"paths":["/c"]}]}}]}]}}`, nil})
		Expect(run1("version: 1\n", "diff", "-f", "-", "-o", "table").stdout).To(Equal(`+ /upstream/blue
    upstream_port: 80
    upstream_protocol: "h2c"
- /upstream/red
    upstream_port: 81
    upstream_max_pending: 1
~ /filter/cors
    filter_config.age: 5 -> (none)
    filter_config.credentials: (none) -> true
    filter_config.origins[1]: "https://b" -> "https://x"
    filter_config.origins[2]: (none) -> "https://y"
    filter_config.rules[1].paths[0]: "/b" -> "/c"
1 to create, 1 to update, 1 to delete, 0 unchanged
`))
	})

	It("tells a difference from a failure", func() {
		serving("PUT /config?dry_run=true", reply{503, `{"detail":"the database is away","code":"unavailable"}`, nil})
		want := "gatehouse: PUT /config: the database is away (503 unavailable)\n"
		Expect(run1("version: 1\n", "diff", "-f", "-", "--exit-code")).To(Equal(result{2, "", want}))
		Expect(run1("version: 1\n", "diff", "-f", "-")).To(Equal(result{1, "", want}))
	})
})

var _ = Describe("A revision in a document", func() {
	It("is overridden by --force, and left out by --no-revision", func() {
		f := serving("PUT /config?force=true", reply{200, `{"data":{"created":0,"updated":1,"deleted":0,"unchanged":0,"changes":[],"warnings":[]}}`, nil})
		f.answers["GET /config?revision=false"] = reply{200, "version: 1\n", nil}
		path := filepath.Join(GinkgoT().TempDir(), "a.yaml")
		Expect(os.WriteFile(path, []byte("version: 1\nrevision: 5-a\n"), 0o600)).To(Succeed())
		good("apply", "--force", "-f", path)
		Expect(f.bodies).To(Equal([]string{"version: 1\nrevision: 5-a\n"}))
		Expect(good("dump", "--no-revision")).To(Equal("version: 1\n"))
	})
})

var _ = Describe("dump", func() {
	It("copies the document of the server", func() {
		f := serving("GET /config", reply{200, "version: 1\nupstreams: []\n", map[string]string{"Content-Type": "application/yaml"}})
		Expect(good("dump")).To(Equal("version: 1\nupstreams: []\n"))
		Expect(f.headers.Get("Accept")).To(Equal("application/yaml"))
	})

	It("requests what the flags specify", func() {
		f := serving("GET /config?secrets=sealed&tag=shop", reply{200, `{"version":1}`, nil})
		Expect(good("dump", "--secrets", "sealed", "--tag", "shop", "-o", "json")).To(Equal(`{"version":1}`))
		Expect(f.headers.Get("Accept")).To(Equal("application/json"))
	})

	It("fails when the document is incomplete", func() {
		serving("GET /config", reply{200, "version: 1\n", map[string]string{"Content-Length": "100"}})
		r := run1("", "dump")
		Expect(r.code).To(Equal(1))
		Expect(r.stderr).To(ContainSubstring("unexpected EOF"))
	})
})
