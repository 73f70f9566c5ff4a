package clients_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

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
		"serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(g.Kill)
	Expect(g.WaitReady(ctx)).To(Succeed())
	l.url = g.API.URL
	document, err := g.API.Get(ctx, "/openapi.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(document.Status).To(Equal(200))
	Expect(os.WriteFile(filepath.Join(l.dir, "openapi.yaml"), []byte(document.Body), 0o600)).To(Succeed())
	return l
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

var _ = Describe("A generated client creates, patches, lists and deletes", func() {
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

	It("in TypeScript, of openapi-typescript and openapi-fetch", func(ctx SpecContext) {
		l := start(ctx, "typescript")
		Expect(os.Symlink(l.tool("node_modules"), filepath.Join(l.dir, "node_modules"))).To(Succeed())
		node := l.tool("bin", "node")
		l.run(ctx, nil, node, "node_modules/openapi-typescript/bin/cli.js", "openapi.yaml", "-o", "api.d.ts")
		l.run(ctx, nil, node, "node_modules/typescript/bin/tsc", "-p", ".")
		Expect(l.run(ctx, nil, node, "main.ts", l.url, adminToken)).To(Equal("done\n"))
	}, SpecTimeout(5*time.Minute))
})
