package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("gatehouse token", func() {
	var home string
	// run runs a command with its own home directory, which has no database.
	run := func(env []string, args ...string) (code int, stdout, stderr string) {
		GinkgoHelper()
		p, err := testkit.SpawnGatehouse(append(env, "HOME="+home, "XDG_DATA_HOME="+home+"/data", "XDG_CONFIG_HOME="+home+"/config"), args...)
		Expect(err).NotTo(HaveOccurred())
		code, err = p.Wait(limit())
		Expect(err).NotTo(HaveOccurred())
		expectNoPanic(p.Stderr.String())
		return code, p.Stdout.String(), p.Stderr.String()
	}
	status := func(g *testkit.Gatehouse, token string) int {
		GinkgoHelper()
		req, err := http.NewRequestWithContext(limit(), http.MethodGet, g.API.URL+"/service", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		a, err := testkit.Send(req)
		Expect(err).NotTo(HaveOccurred())
		return a.Status
	}
	BeforeEach(func() { home = GinkgoT().TempDir() })

	It("creates the first token through the open API, which is closed from then on", func() {
		g, _ := standalone()
		server := []string{"GATEHOUSE_SERVER=" + g.API.URL}
		code, stdout, stderr := run(server, "token", "create", "ann", "--role", "admin")
		Expect(code).To(BeZero(), stderr)
		Expect(stdout).To(MatchRegexp(`^gh_[A-Za-z0-9_-]{43}\n$`))
		Expect(stderr).To(Equal("using the server " + g.API.URL + "\n" +
			"its API was open until now; from now on every call needs a token: --token-file FILE, GATEHOUSE_TOKEN_FILE or a context\n"))
		token := strings.TrimSpace(stdout)
		Expect(status(g, "")).To(Equal(401))
		Expect(status(g, token)).To(Equal(200))
		Expect(os.ReadDir(home)).To(BeEmpty(), "no database is made elsewhere")

		By("and then requires that token")
		code, stdout, stderr = run(server, "token", "create", "ci", "--role", "viewer")
		Expect([]any{code, stdout}).To(Equal([]any{1, ""}))
		Expect(stderr).To(ContainSubstring("send a token with --token-file"))
		file := filepath.Join(GinkgoT().TempDir(), "token")
		Expect(os.WriteFile(file, []byte(token), 0o600)).To(Succeed())
		code, stdout, stderr = run(server, "token", "create", "ci", "--role", "viewer", "--token-file", file)
		Expect([]any{code, stderr}).To(Equal([]any{0, "using the server " + g.API.URL + "\n"}))
		Expect(status(g, strings.TrimSpace(stdout))).To(Equal(200))
		_, stdout, _ = run(server, "token", "list", "--token-file", file, "-o", "table")
		Expect(stdout).To(MatchRegexp(`^NAME  ROLE    TAGS  CREATED               LAST_USED\nann   admin   -     20\S+Z  20\S+Z\nci    viewer  -     20\S+Z  20\S+Z\n$`))
		code, stdout, stderr = run(server, "token", "revoke", "ci", "--token-file", file)
		Expect([]any{code, stdout}).To(Equal([]any{0, "token \"ci\" is revoked\n"}), stderr)
	})

	It("works on the specified database while that one's server runs", func() {
		dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		g := start(nil, standaloneArgs(dir, freePort())...)
		code, stdout, stderr := run(nil, "token", "create", "ann", "--role", "admin", "--data-dir", dir)
		Expect(code).To(BeZero(), stderr)
		Expect(stderr).To(MatchRegexp(`^using the database ` + dir + `/gatehouse\.db beside process \d+ \(gatehouse standalone\)\n$`))
		Expect(status(g, "")).To(Equal(401))
		Expect(status(g, strings.TrimSpace(stdout))).To(Equal(200))
		Expect(os.ReadDir(home)).To(BeEmpty())
	})
})
