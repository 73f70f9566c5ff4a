package newcomer_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// blocks returns the commands of a section of README.md, block by block.
func blocks(heading string) (list [][]string) {
	GinkgoHelper()
	return blocksOf("../../README.md", heading)
}

func blocksOf(file, heading string) (list [][]string) {
	GinkgoHelper()
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	Expect(found).To(BeTrue(), heading)
	section, _, _ = strings.Cut(section, "\n## ")
	for i, part := range strings.Split(section, "\n```\n") {
		if i%2 == 1 {
			list = append(list, strings.Split(part, "\n"))
		}
	}
	return list
}

// gateway is a running gatehouse standalone. The commands of README.md reach it, except
// for the ports, and write files into their own directory.
type gateway struct {
	*testkit.Process
	api, http, https, dir, data string
}

func standalone(more ...string) gateway {
	GinkgoHelper()
	port := func() string {
		p, err := testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
		return fmt.Sprint("127.0.0.1:", p)
	}
	g := gateway{api: port(), http: port(), https: port(), dir: GinkgoT().TempDir(), data: GinkgoT().TempDir()}
	_, httpPort, _ := strings.Cut(g.http, ":")
	_, httpsPort, _ := strings.Cut(g.https, ":")
	var err error
	g.Process, err = testkit.SpawnGatehouse(nil, append([]string{
		"standalone", "--data-dir", g.data, "--api-addr", g.api, "--http-port", httpPort, "--https-port", httpsPort,
		"--xds-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
	}, more...)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(g.Stop(ctx)).To(BeZero(), g.Stderr.String())
	}, NodeTimeout(time.Minute))
	Eventually(g.run).WithArguments("curl -sS http://127.0.0.1:1323/ready").Should(Equal(`{"status":"ok"}`))
	return g
}

// run runs a line of README.md in a shell, with the ports of g and additional changes
// of the form old, new, ...
func (g gateway) run(line string, changes ...string) (string, error) {
	_, httpsPort, _ := strings.Cut(g.https, ":")
	changes = append(changes, "127.0.0.1:1323", g.api, "127.0.0.1:8080", g.http, ":8443", ":"+httpsPort)
	cmd := exec.CommandContext(limit(), "sh", "-c", strings.NewReplacer(changes...).Replace(line))
	cmd.Dir = g.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// created runs lines that each create one thing.
func (g gateway) created(lines []string, changes ...string) {
	GinkgoHelper()
	for _, line := range lines {
		Expect(line).To(HavePrefix("curl -sS "), "a command that shows its answer and nothing else")
		Expect(g.run(line, changes...)).To(Or(ContainSubstring(`{"affected_rows":1}`), Equal(`{"name":"gw"}`)), line)
	}
}

var _ = Describe("README.md", func() {
	It("adds a service to the demo", func() {
		list := blocks("Install")
		Expect(list).To(HaveLen(2))
		Expect(list[0][2]).To(Equal("gatehouse standalone --demo"))
		g := standalone("--demo")
		Eventually(g.Stdout.String).Should(ContainSubstring("Ctrl-C ends the gateway"))
		calls := list[1]
		g.created(calls[:len(calls)-1])
		Expect(g.run(calls[len(calls)-1])).To(And(ContainSubstring(`"host": "hello.local"`), ContainSubstring(`"path": "/greeting"`)))
	})

	It("leads from nothing to a request", func() {
		list := blocks("From nothing to a request")
		Expect(list).To(HaveLen(2))
		Expect(list[0]).To(Equal([]string{
			"gatehouse standalone --data-dir data &",
			"python3 -m http.server 9000 --bind 127.0.0.1 &",
		}))
		backend, err := testkit.StartBackend("web", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(backend.Close)
		g, calls := standalone(), list[1]
		g.created(calls[:len(calls)-1], "Upstream_port=9000", fmt.Sprint("Upstream_port=", backend.Port))
		Expect(g.run(calls[len(calls)-1])).To(ContainSubstring(`"Backend":"web"`))
		Expect(g.run("curl -sS http://127.0.0.1:1323/service/dump/web")).To(ContainSubstring(`"upstream_name":"web"`))

		By("over HTTPS")
		list = blocks("HTTPS")
		Expect(list).To(HaveLen(1))
		calls = list[0]
		Expect(calls[0]).To(HavePrefix("openssl req "))
		out, err := g.run(calls[0])
		Expect(err).NotTo(HaveOccurred(), out)
		g.created(calls[1 : len(calls)-1])
		Expect(g.run(calls[len(calls)-1])).To(ContainSubstring(`"Host":"shop.test`))
	})
})
