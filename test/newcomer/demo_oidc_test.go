package newcomer_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// demoOIDC builds the program of make demo-oidc.
func demoOIDC() string {
	GinkgoHelper()
	binary := filepath.Join(GinkgoT().TempDir(), "demo-oidc")
	out, err := exec.CommandContext(limit(), "go", "build", "-o", binary, "../../hack/demo-oidc").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return binary
}

// demoArgs returns free ports; the HTTPS port is last.
func demoArgs() (args []string, https string) {
	GinkgoHelper()
	port := func() string {
		p, err := testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
		return fmt.Sprint(p)
	}
	https = port()
	return []string{"--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--http-port", port(), "--https-port", https}, https
}

var _ = Describe("make demo-oidc", func() {
	It("prints an address, users and what to try, all of which works, and leaves nothing behind", func(ctx SpecContext) {
		args, _ := demoArgs()
		dir := GinkgoT().TempDir()
		out := &testkit.Output{}
		cmd := exec.CommandContext(ctx, demoOIDC(), args...)
		cmd.Stdout, cmd.Stderr, cmd.Env = out, out, append(os.Environ(), "TMPDIR="+dir)
		Expect(cmd.Start()).To(Succeed())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		DeferCleanup(func() { _ = cmd.Process.Kill() })
		Eventually(out.String).Should(ContainSubstring("Ctrl-C ends the demo"))
		text := out.String()
		home := regexp.MustCompile(`(?m)^  (https://shop\.localhost:\d+)/$`).FindStringSubmatch(text)
		Expect(home).NotTo(BeNil(), text)
		users := regexp.MustCompile(`(?m)^  (ann|bob) +(\S+) `).FindAllStringSubmatch(text, -1)
		Expect(users).To(HaveLen(2), text)
		ca := regexp.MustCompile(`--cacert (\S+)`).FindStringSubmatch(text)
		Expect(ca).NotTo(BeNil(), text)
		pem, err := os.ReadFile(ca[1])
		Expect(err).NotTo(HaveOccurred())
		authority, err := testkit.ReadAuthority(string(pem))
		Expect(err).NotTo(HaveOccurred())

		for _, u := range users {
			b := testkit.NewBrowser(authority)
			page, err := b.Open(ctx, home[1]+"/")
			Expect(err).NotTo(HaveOccurred())
			back, err := b.LogIn(ctx, page, u[1], u[2])
			Expect(err).NotTo(HaveOccurred())
			Expect(back.Status).To(Equal(map[string]int{"ann": 200, "bob": 403}[u[1]]), back.Body)
			if u[1] == "ann" {
				Expect(seen(back).Get("X-User")).To(Equal("ann"))
			}
			b.Close()
		}
		By("with the commands that it shows")
		var answers []string
		for line := range strings.SplitSeq(text, "\n") {
			line, shown := strings.CutPrefix(line, "  ")
			if !shown || !strings.HasPrefix(line, "curl ") && !strings.HasPrefix(line, "bin/gatehouse ") {
				continue
			}
			cmd := exec.CommandContext(limit(), "sh", "-c", line)
			cmd.Dir = "../.."
			answer, err := cmd.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s\n%s", line, answer)
			answers = append(answers, string(answer))
		}
		Expect(answers).To(HaveLen(3), text)
		Expect(answers[0]).To(MatchRegexp(`^HTTP/2 302`))
		Expect(answers[1]).To(MatchRegexp(`^HTTP/2 401`))
		Expect(answers[2]).To(ContainSubstring(`"ok": true`))

		Expect(cmd.Process.Signal(syscall.SIGINT)).To(Succeed())
		Eventually(ended).Should(Receive(BeNil()), out.String)
		Expect(os.ReadDir(dir)).To(BeEmpty())
	})

	It("reports which port is taken, and how to choose another one", func(ctx SpecContext) {
		args, https := demoArgs()
		l, err := net.Listen("tcp", "127.0.0.1:"+https)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(l.Close)
		out, err := exec.CommandContext(ctx, demoOIDC(), args...).CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(out)).To(ContainSubstring(`choose another one: make demo-oidc ARGS="--https-port PORT"`))
		Expect(string(out)).To(HavePrefix("demo-oidc: port " + https + " is taken"))
	})
})
