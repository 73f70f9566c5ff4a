package newcomer_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// typed is a command of a file such as lines.txt with what it shows, in the form that is described there.
type typed struct {
	command      string
	code         int
	has, not, in []string
}

func typedLines(file string) (list []typed) {
	GinkgoHelper()
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		mark, rest, _ := strings.Cut(line, " ")
		if mark == "$" {
			list = append(list, typed{command: rest})
			continue
		}
		if line == "" || mark == "#" {
			continue
		}
		last := &list[len(list)-1]
		switch mark {
		case "=":
			last.code, err = strconv.Atoi(rest)
			Expect(err).NotTo(HaveOccurred(), line)
		case "-":
			last.not = append(last.not, rest)
		case ">":
			last.in = append(last.in, rest)
		default:
			last.has = append(last.has, line)
		}
	}
	return list
}

var _ = Describe("A newcomer", func() {
	It("sees what was meant, who did what and how to go on", func() {
		backend, err := testkit.StartBackend("web", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(backend.Close)
		g := standalone("--access-log", "json")
		GinkgoT().Setenv("GATEHOUSE_SERVER", "http://"+g.api)
		GinkgoT().Setenv("HOME", g.dir)
		for _, line := range append(blocks("From nothing to a request")[1], blocks("HTTPS")[0]...) {
			out, err := g.run(line, "Upstream_port=9000", fmt.Sprint("Upstream_port=", backend.Port))
			Expect(err).NotTo(HaveOccurred(), out)
		}

		lines := typedLines("lines.txt")
		Expect(len(lines)).To(BeNumerically(">", 20))
		for _, t := range lines {
			g.typed(t)
		}
	})
})

// typed types a command as run does, and compares what it shows.
func (g gateway) typed(t typed, changes ...string) {
	GinkgoHelper()
	out, err := g.run(t.command, changes...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		Expect(err).NotTo(HaveOccurred(), t.command)
	}
	about := "$ " + t.command + "\n" + out
	Expect(code).To(Equal(t.code), "%s", about)
	for _, has := range t.has {
		Expect(out).To(ContainSubstring(has), "%s", about)
	}
	for _, not := range t.not {
		Expect(out).NotTo(ContainSubstring(not), "%s", about)
	}
	for _, in := range t.in {
		Eventually(g.Stdout.String).Should(MatchRegexp(in), "%s", about)
	}
}
