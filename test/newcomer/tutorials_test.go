package newcomer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// step is a part of a tutorial: a file to save, or a command with what it shows.
type step struct {
	file, content string
	command       string
	shows         []string
}

var (
	fence = regexp.MustCompile("(?s)(?:`([a-z-]+\\.yaml)`[^`]*)?\n```([a-z]*)\n(.*?)\n```\n")
	// What listens in a tutorial, on a port that is free on any machine but one that runs specs.
	portOf = regexp.MustCompile(`http\.server (\d+) |-accept 127\.0\.0\.1:(\d+) |port: (15432)\n|-addr 127\.0\.0\.1:(\d+) |http_port: (8080),`)
)

// stepsOf returns the steps of a tutorial. A YAML block after a name is saved; in a block without a language, a line with
// "$ " is a command, and each other line is a part of what it shows.
func stepsOf(text string) (list []step) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		switch m[2] {
		case "yaml":
			Expect(m[1]).NotTo(BeEmpty(), "no name for %s", m[3])
			list = append(list, step{file: m[1], content: m[3] + "\n"})
		case "":
			for line := range strings.SplitSeq(m[3], "\n") {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					list = append(list, step{command: command})
				} else if last := &list[len(list)-1]; last.command != "" {
					last.shows = append(last.shows, line)
				}
			}
		}
	}
	return list
}

// database is the address of one in a tutorial.
const database = "postgres://gatehouse:secret@127.0.0.1/gatehouse"

// startDatabase returns the address of an empty one.
func startDatabase() string {
	GinkgoHelper()
	server, err := postgres.Start(limit(), GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	return server.URL("postgres")
}

// learner follows a tutorial in an empty folder.
type learner struct {
	dir     string
	gateway gateway
	changes []string
	log     string
	// jobs are what runs in the background, besides a standalone gateway, in the order of the shell.
	jobs []*exec.Cmd
}

// address returns where something listens that has this port in the tutorial.
func (l *learner) address(port string) string {
	return "127.0.0.1:" + l.changes[slices.Index(l.changes, port)+1]
}

// follow follows a step.
func (l *learner) follow(s step) {
	GinkgoHelper()
	background, waits := strings.CutSuffix(s.command, " &")
	gatehouse := strings.HasPrefix(s.command, "gatehouse standalone --data-dir data")
	switch {
	case s.file != "":
		write(l.dir, s.file, strings.NewReplacer(l.changes...).Replace(s.content))
	case waits && gatehouse:
		args, log, _ := strings.Cut(strings.TrimPrefix(background, "gatehouse standalone --data-dir data"), "> ")
		l.gateway, l.log = standalone(strings.Fields(args)...), log
		l.gateway.dir = l.dir
		GinkgoT().Setenv("GATEHOUSE_SERVER", "http://"+l.gateway.api)
	case waits:
		cmd := exec.Command("sh", "-c", "exec "+strings.NewReplacer(l.changes...).Replace(background)) //nolint:noctx // ends below
		cmd.Dir = l.dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		Expect(cmd.Start()).To(Succeed())
		l.jobs = append(l.jobs, cmd)
		DeferCleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM) // unless it has ended
			_ = cmd.Wait()
		})
	case strings.HasPrefix(s.command, "kill %"):
		job, err := strconv.Atoi(strings.TrimPrefix(s.command, "kill %"))
		Expect(err).NotTo(HaveOccurred())
		Expect(l.jobs[job-1].Process.Signal(syscall.SIGTERM)).To(Succeed())
		_ = l.jobs[job-1].Wait()
	default:
		l.run(s)
	}
}

// run runs a command. What reads only is repeated until it shows what it should: an Envoy, a log or a backend may be late.
func (l *learner) run(s step) {
	GinkgoHelper()
	l.gateway.dir = l.dir
	run := func() string {
		if l.log != "" {
			write(l.dir, l.log, l.gateway.Stdout.String())
		}
		out, err := l.gateway.run(s.command, l.changes...)
		if err != nil && len(s.shows) == 0 {
			return fmt.Sprint("failed: ", err, " ", out)
		}
		return out
	}
	shows := Not(HavePrefix("failed: "))
	for _, text := range s.shows {
		shows = And(shows, ContainSubstring(text))
	}
	if writes := regexp.MustCompile(`^(gatehouse (apply|import|secret|pki)|curl -sS -(d|X POST) |sed|for|mkdir|openssl)`); writes.MatchString(s.command) {
		Expect(run()).To(shows, s.command)
		return
	}
	Eventually(run).WithTimeout(20*time.Second).Should(shows, s.command)
}

// terminal returns a folder with a gatehouse that prints what it prints on a terminal.
func terminal() string {
	GinkgoHelper()
	binary, err := filepath.Abs("../../bin/gatehouse")
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	write(dir, "gatehouse", "#!/bin/sh\ncase $1 in secret | serve | envoy | pki) exec "+binary+" \"$@\" ;; *) exec "+binary+" \"$@\" -o table ;; esac\n")
	Expect(os.Chmod(filepath.Join(dir, "gatehouse"), 0o700)).To(Succeed()) //nolint:gosec // it is a program
	return dir
}

var _ = Describe("A tutorial", func() {
	pages, err := filepath.Glob("../../docs/tutorials/*.md")
	if err != nil || len(pages) < 7 {
		panic("there are no tutorials")
	}
	for _, page := range pages {
		It("works from nothing, line by line: "+filepath.Base(page), func() {
			text, err := os.ReadFile(page)
			Expect(err).NotTo(HaveOccurred())
			l := &learner{dir: GinkgoT().TempDir()}
			GinkgoT().Setenv("PATH", terminal()+":"+os.Getenv("PATH"))
			GinkgoT().Setenv("HOME", l.dir)
			for _, m := range portOf.FindAllStringSubmatch(string(text), -1) {
				if old := strings.Join(m[1:], ""); !slices.Contains(l.changes, old) {
					port, err := testkit.FreePort()
					Expect(err).NotTo(HaveOccurred())
					l.changes = append(l.changes, old, fmt.Sprint(port))
				}
			}
			if strings.Contains(string(text), database) { // its control planes are not standalone
				l.changes = append(l.changes, database, startDatabase())
				l.gateway.api, l.gateway.http = l.address("1323"), l.address("8080")
				GinkgoT().Setenv("GATEHOUSE_SERVER", "http://"+l.gateway.api)
			}
			steps := stepsOf(string(text))
			Expect(len(steps)).To(BeNumerically(">", 6))
			for _, s := range steps {
				l.follow(s)
			}
		})
	}
})
