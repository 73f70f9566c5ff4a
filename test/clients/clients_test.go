package clients_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestClients(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "Clients")
}

// adminToken is the token of the clients.
const adminToken = "gh_clients-token-of-the-tests-0123456789abcdef0"

// lab is a directory with the generated files, and the place of tools.
type lab struct {
	dir, tools string
	url        string
}

// start runs the program, and copies a client's source and the document that
// the program serves to a directory.
func start(ctx context.Context, language string) lab {
	GinkgoHelper()
	tools, err := testkit.Binary("clients")
	Expect(err).NotTo(HaveOccurred(), "`make clients` fetches them")
	l := lab{dir: filepath.Join(GinkgoT().TempDir(), language), tools: tools}
	Expect(os.CopyFS(l.dir, os.DirFS(filepath.Join("testdata", language)))).To(Succeed())

	g, err := testkit.StartGatehouse(ctx, []string{"GATEHOUSE_API_ADMIN_TOKEN=" + adminToken},
		"serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0", "--allow-lua")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(g.Kill)
	Expect(g.WaitReady(ctx)).To(Succeed())
	l.url = g.API.URL
	document, err := g.API.Get(ctx, "/openapi.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(document.Status).To(Equal(200))
	l.write("openapi.yaml", document.Body)
	authority, err := testkit.NewAuthority("clients")
	Expect(err).NotTo(HaveOccurred())
	pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.example.com"}})
	Expect(err).NotTo(HaveOccurred())
	l.write("cert.pem", pair.Cert)
	l.write("key.pem", pair.Key)
	l.filters(document.Body)
	return l
}

// filterExample is an element of testdata/filters.json: a filter, as each client creates it.
type filterExample struct {
	Type   string          `json:"type"`
	Schema string          `json:"schema"`
	On     string          `json:"on"`
	Config json.RawMessage `json:"config"`
}

// filters writes the filters for the clients, as JSON and as TypeScript. They have every
// schema of configurations that the document has.
func (l lab) filters(document string) {
	GinkgoHelper()
	text, err := os.ReadFile("testdata/filters.json")
	Expect(err).NotTo(HaveOccurred())
	var list []filterExample
	Expect(json.Unmarshal(text, &list)).To(Succeed())
	doc, err := openapi3.NewLoader().LoadFromData([]byte(document))
	Expect(err).NotTo(HaveOccurred())
	schemas := []string{"Text"} // a string that contains JSON
	types := map[any]bool{}
	ts := "import type { components } from \"./api.d.ts\";\n\ntype S = components[\"schemas\"];\nexport const filters = [\n"
	for _, f := range list {
		schemas, types[f.Type] = append(schemas, f.Schema), true
		ts += fmt.Sprintf("{on: %q, body: {Filter_name: %q, Filter_type: %q, Filter_config: %s satisfies S[%q]} satisfies S[\"FilterCreate\"]},\n",
			f.On, strings.ToLower(f.Schema), f.Type, f.Config, f.Schema)
	}
	var documented []string
	for _, s := range doc.Components.Schemas["FilterPatch"].Value.Properties["Filter_config"].Value.AnyOf {
		documented = append(documented, path.Base(s.Ref))
	}
	Expect(schemas).To(ConsistOf(documented))
	long := slices.DeleteFunc(slices.Clone(doc.Components.Schemas["FilterType"].Value.Enum), func(name any) bool {
		return !strings.Contains(fmt.Sprint(name), "_filter_") // the same type by its short name
	})
	Expect(slices.Collect(maps.Keys(types))).To(ConsistOf(long...))
	l.write("filters.json", string(text))
	l.write("filters.ts", ts+"];\n")
}

func (l lab) write(name, text string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600)).To(Succeed())
}

func (l lab) tool(path ...string) string { return filepath.Join(append([]string{l.tools}, path...)...) }

// run runs a command, which must succeed, and waits for its end.
func (l lab) run(ctx context.Context, env []string, command ...string) (output string) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = l.dir, append(os.Environ(), env...), 10*time.Second
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%q: %s", command, out)
	return string(out)
}

var _ = Describe("A generated client creates, attaches, patches, lists and deletes objects of every kind", func() {
	It("in Go, of oapi-codegen", func(ctx SpecContext) {
		l := start(ctx, "go")
		l.run(ctx, nil, l.tool("bin", "oapi-codegen"), "-package", "main", "-generate", "types,client", "-o", "api.go", "openapi.yaml")
		l.run(ctx, nil, "go", "build", "-trimpath", "-buildvcs=false", "-o", "client", ".")
		Expect(l.run(ctx, nil, filepath.Join(l.dir, "client"), l.url, adminToken)).To(Equal("done\n"))
	}, SpecTimeout(5*time.Minute))

	It("in Python, of openapi-generator", func(ctx SpecContext) {
		l := start(ctx, "python")
		l.run(ctx, nil, l.tool("bin", "java"), "-jar", l.tool("bin", "openapi-generator.jar"), "generate", "-g", "python", "-i", "openapi.yaml",
			"-o", ".", "--package-name", "gatehouse_client", "--global-property",
			"models,apis,supportingFiles,modelDocs=false,apiDocs=false,modelTests=false,apiTests=false")
		Expect(l.run(ctx, []string{"PYTHONDONTWRITEBYTECODE=1"}, l.tool("bin", "python"), "main.py", l.url, adminToken)).To(Equal("done\n"))
	}, SpecTimeout(5*time.Minute))

	It("in Python, of openapi-python-client", func(ctx SpecContext) {
		l := start(ctx, "attrs")
		out := l.run(ctx, nil, l.tool("bin", "python"), "-m", "openapi_python_client", "generate", "--path", "openapi.yaml", "--meta", "none", "--output-path", "gatehouse_attrs")
		// It knows no YAML, which is one of the two media types of documents and the only one of GET /openapi.yaml. Else it leaves nothing out.
		warnings := regexp.MustCompile(`WARNING .*`).FindAllString(out, -1)
		Expect(warnings).To(ConsistOf("WARNING parsing PUT /config within config.", "WARNING parsing GET /openapi.yaml within document.",
			"WARNING parsing POST /proxy/{proxy}/explain within status."), out)
		Expect(out).NotTo(Or(ContainSubstring("will not be generated"), ContainSubstring("Unable to process schema")))
		Expect(l.run(ctx, []string{"PYTHONDONTWRITEBYTECODE=1"}, l.tool("bin", "python"), "main.py", l.url, adminToken)).To(Equal("done\n"))
	}, SpecTimeout(5*time.Minute))

	It("in TypeScript, of openapi-typescript and openapi-fetch", func(ctx SpecContext) {
		l := start(ctx, "typescript")
		Expect(os.Symlink(l.tool("node_modules"), filepath.Join(l.dir, "node_modules"))).To(Succeed())
		node := l.tool("bin", "node")
		l.run(ctx, nil, node, "node_modules/openapi-typescript/bin/cli.js", "openapi.yaml", "-o", "api.d.ts")
		l.run(ctx, nil, node, "node_modules/typescript/bin/tsc", "-p", ".")
		Expect(l.run(ctx, nil, node, "main.ts", l.url, adminToken)).To(Equal("done\n"))
	}, SpecTimeout(5*time.Minute))
})
