package newcomer_test

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// module is a Go module with a dependency that the machine does not have yet.
type module struct{ dir, cache, proxy string }

func newModule() module {
	GinkgoHelper()
	temp := GinkgoT().TempDir()
	m := module{filepath.Join(temp, "module"), filepath.Join(temp, "cache"), filepath.Join(temp, "proxy")}
	m.publish("example.com/dep", "v1.0.0")
	const code = "package m\n\nimport _ \"example.com/dep\"\n"
	const gomod = "\n\ngo 1.24\n\nrequire example.com/dep v1.0.0\n"
	write(m.dir, "go.mod", "module example.com/m"+gomod)
	write(m.dir, "m.go", code)
	write(m.dir, "ratelimit/go.mod", "module example.com/ratelimit"+gomod)
	write(m.dir, "ratelimit/m.go", code)
	write(m.dir, "hack/docs/main.go", "package main\n\nfunc main() {}\n")
	write(m.dir, "hack/systemd/gatehouse.service", "[Service]\nExecStart=/usr/local/bin/gatehouse serve\n")
	// Messages of the linter to its users, without findings.
	m.program("bin/tools/golangci-lint", "echo 'level=info msg=cache' >&2; echo '0 issues.'")
	m.program("hack/crds.sh", "")
	m.program("hack/console.sh", "")
	write(m.dir, "hack/docs/main.go", "package main\n\nfunc main() {}\n")
	for _, name := range []string{"hack/lint.sh", "hack/lib.sh"} {
		text, err := os.ReadFile("../../" + name)
		Expect(err).NotTo(HaveOccurred())
		write(m.dir, name, string(text))
	}
	m.git("init", "--quiet")
	m.git("add", ".")
	for _, dir := range []string{m.dir, filepath.Join(m.dir, "ratelimit")} {
		tidy := m.command("go", "-C", dir, "mod", "tidy")
		out, err := tidy.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
	}
	m.emptyCache()
	return m
}

// publish puts a module with one package on the proxy.
func (m module) publish(path, version string) {
	GinkgoHelper()
	at := filepath.Join(path, "@v", version)
	write(m.proxy, at+".info", `{"Version":"`+version+`"}`)
	write(m.proxy, at+".mod", "module "+path+"\n")
	write(m.proxy, at+".zip", "")
	file, err := os.Create(filepath.Join(m.proxy, at+".zip"))
	Expect(err).NotTo(HaveOccurred())
	z := zip.NewWriter(file)
	for name, text := range map[string]string{"go.mod": "module " + path + "\n", "dep.go": "package dep\n"} {
		w, err := z.Create(path + "@" + version + "/" + name)
		Expect(err).NotTo(HaveOccurred())
		_, err = w.Write([]byte(text))
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(z.Close()).To(Succeed())
	Expect(file.Close()).To(Succeed())
}

func (m module) program(name, script string) {
	GinkgoHelper()
	write(m.dir, name, "#!/bin/sh\n"+script+"\n")
	Expect(os.Chmod(filepath.Join(m.dir, name), 0o700)).To(Succeed()) //nolint:gosec // a program
}

func (m module) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(limit(), name, args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GOPROXY=file://"+m.proxy, "GOSUMDB=off", "GOMODCACHE="+m.cache, "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local")
	return cmd
}

func (m module) git(args ...string) {
	GinkgoHelper()
	out, err := m.command("git", args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

func (m module) emptyCache() {
	GinkgoHelper()
	Expect(os.RemoveAll(m.cache)).To(Succeed())
}

// lint runs the checks. Its lines are "ok    NAME" and "WRONG NAME"; said is its
// complete output.
func (m module) lint() (code int, lines []string, said string) {
	GinkgoHelper()
	cmd := m.command("bash", "hack/lint.sh")
	out, err := cmd.CombinedOutput()
	Expect(cmd.ProcessState).NotTo(BeNil(), "%v", err)
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "ok    ") || strings.HasPrefix(line, "WRONG ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return cmd.ProcessState.ExitCode(), lines, string(out)
}

var _ = Describe("make lint", func() {
	It("finds nothing on a machine that must first download the modules", func() {
		m := newModule()
		code, lines, said := m.lint()
		Expect(said).To(ContainSubstring("go: downloading example.com/dep v1.0.0"), "else this proves nothing")
		Expect(lines).To(Equal([]string{
			"ok    gofmt", "ok    go.mod (go mod tidy)", "ok    ratelimit/go.mod (go mod tidy)", "ok    CustomResourceDefinitions (make crds)",
			"ok    console (make console)", "ok    shell syntax", "ok    units of systemd", "ok    golangci-lint", "ok    documentation (make docs)",
		}), said)
		Expect(code).To(BeZero())
	})

	It("reports what is wrong", func() {
		m := newModule()
		write(m.dir, "m.go", "package m\nimport   \"os\"\n")
		write(m.dir, "ratelimit/m.go", "package m\n")
		write(m.dir, "hack/broken.sh", "if true; then\n")
		m.program("hack/crds.sh", "echo 'they are stale'")
		write(m.dir, "hack/docs/main.go", "package main\n\nfunc main() { panic(\"a dead link\") }\n")
		m.program("bin/tools/golangci-lint", "echo 'm.go:1:1: bad'; echo '1 issues:'; exit 1")
		write(m.dir, "hack/docs/main.go", "package main\n\nfunc main() { panic(\"a dead link\") }\n")
		code, lines, said := m.lint()
		Expect(lines).To(Equal([]string{
			"WRONG gofmt", "WRONG go.mod (go mod tidy)", "WRONG ratelimit/go.mod (go mod tidy)", "WRONG CustomResourceDefinitions (make crds)",
			"ok    console (make console)", "WRONG shell syntax", "ok    units of systemd", "WRONG golangci-lint", "WRONG documentation (make docs)",
		}), said)
		Expect(said).To(And(ContainSubstring("\nm.go\n"), ContainSubstring("-require example.com/dep v1.0.0\n"), ContainSubstring("hack/broken.sh: line "),
			ContainSubstring("m.go:1:1: bad\n"), ContainSubstring("a dead link"), HaveSuffix("error: make lint found something\n")))
		Expect(code).To(Equal(1))
	})

	It("accepts a deleted file that is not committed", func() {
		m := newModule()
		Expect(os.Remove(filepath.Join(m.dir, "m.go"))).To(Succeed())
		write(m.dir, "n.go", "package m\n\nimport _ \"example.com/dep\"\n")
		code, _, said := m.lint()
		Expect(code).To(BeZero(), said)
	})

	It("fails if a check cannot be run", func() {
		m := newModule()
		Expect(os.RemoveAll(m.proxy)).To(Succeed())
		m.program("bin/tools/golangci-lint", "echo 'no memory' >&2; exit 3")
		code, lines, said := m.lint()
		Expect(lines).To(Equal([]string{
			"ok    gofmt", "WRONG go.mod (go mod tidy)", "WRONG ratelimit/go.mod (go mod tidy)", "ok    CustomResourceDefinitions (make crds)",
			"ok    console (make console)", "ok    shell syntax", "ok    units of systemd", "WRONG golangci-lint", "ok    documentation (make docs)",
		}), said)
		Expect(said).To(ContainSubstring("no memory"))
		Expect(code).To(Equal(1))
	})
})
