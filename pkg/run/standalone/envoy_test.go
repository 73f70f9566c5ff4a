package standalone_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// program is the Envoy that `make envoy` fetches.
const program = "../../../bin/envoy"

// bootstrap returns the bootstrap of an Envoy that sends requests at port to a backend.
// It has an access log and needs no control plane.
func bootstrap(socket string, port int, backend string) []byte {
	host, backendPort, _ := net.SplitHostPort(backend)
	return fmt.Appendf(nil, `
admin: {address: {pipe: {path: %s}}}
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: %d}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: gatehouse
          access_log:
          - name: stdout
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
              log_format: {text_format_source: {inline_string: "seen %%REQ(:PATH)%%\n"}}
          http_filters:
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: backend, timeout: 0s}}]}
  clusters:
  - name: backend
    load_assignment:
      cluster_name: backend
      endpoints:
      - lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]
`, socket, port, host, backendPort)
}

func freePort() int {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	return port
}

// supervised is a running supervisor.
type supervised struct {
	*standalone.Envoy
	log, access *gbytes.Buffer
	port        int
	stop        context.CancelFunc
	done        chan error
}

// get returns "<status> <body> close=<whether the connection was closed>".
func (s *supervised) get(path string) (string, error) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Timeout: testkit.Patience, Transport: transport}).Get(fmt.Sprintf("http://127.0.0.1:%d%s", s.port, path))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s close=%t", resp.StatusCode, body, resp.Close), err
}

// pid returns the process ID of the newest Envoy that was ready.
func (s *supervised) pid() int { return lastPID(string(s.log.Contents())) }

func lastPID(log string) int {
	found := regexp.MustCompile(`msg="envoy is ready" pid=(\d+)`).FindAllStringSubmatch(log, -1)
	if len(found) == 0 {
		return 0
	}
	pid, _ := strconv.Atoi(found[len(found)-1][1])
	return pid
}

func run(change func(*standalone.EnvoyOptions)) *supervised {
	GinkgoHelper()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") }))
	DeferCleanup(backend.Close)
	log := slog.New(slog.DiscardHandler)
	dir, err := standalone.OpenRunDir(log)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(dir.Close)
	socket := dir.Join("admin.sock")
	s := &supervised{port: freePort(), log: gbytes.NewBuffer(), access: gbytes.NewBuffer(), done: make(chan error, 1)}
	opts := standalone.EnvoyOptions{
		Path: program, Bootstrap: bootstrap(socket, s.port, backend.Listener.Addr().String()),
		AdminSocket: socket, Dir: dir, Stdout: s.access,
		Log: slog.New(slog.NewTextHandler(io.MultiWriter(s.log, GinkgoWriter), nil)),
	}
	if change != nil {
		change(&opts)
	}
	s.Envoy = standalone.NewEnvoy(opts)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- s.Run(ctx); close(s.done) }()
	DeferCleanup(func() {
		stop()
		Eventually(s.done).Should(BeClosed())
	})
	return s
}

var _ = Describe("Supervisor", func() {
	BeforeEach(func() {
		before := gleak.Goroutines()
		DeferCleanup(func() {
			http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))
		})
	})

	It("runs Envoy, passes on its access log and stops it", func() {
		s := run(nil)
		Eventually(s.Ready()).Should(BeClosed())
		Expect(s.get("/a")).To(Equal("200 hello close=false"))
		pid := s.pid()

		began := time.Now()
		s.stop()
		Eventually(s.done).Should(Receive(BeNil()))
		Expect(time.Since(began)).To(BeNumerically("<", 4*time.Second), "with nothing to wait for")
		Expect(s.access.Contents()).To(Equal([]byte("seen /a\n")))
		Expect(syscall.Kill(pid, 0)).To(MatchError(syscall.ESRCH))
	})

	It("restarts Envoy when it is killed", func() {
		s := run(nil)
		Eventually(s.Ready()).Should(BeClosed())
		first := s.pid()
		Expect(syscall.Kill(first, syscall.SIGKILL)).To(Succeed())
		Eventually(s.log).Should(gbytes.Say(`level=ERROR msg="envoy exited and is started again" exit="signal 9 \(killed\)" ran=\S+ next_try_in=500ms`))
		Eventually(s.pid).ShouldNot(Equal(first))
		Expect(s.get("/b")).To(Equal("200 hello close=false"))
	})

	Describe("with a request running", func() {
		var s *supervised
		var arrived, release chan struct{}
		var answer chan string

		BeforeEach(func() {
			arrived, release, answer = make(chan struct{}), make(chan struct{}), make(chan string, 1)
			slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					close(arrived)
					<-release
				}
				fmt.Fprint(w, "late")
			}))
			DeferCleanup(slow.Close)
			s = run(func(o *standalone.EnvoyOptions) {
				port := regexp.MustCompile(`port_value: [1-9]\d*`).FindString(string(o.Bootstrap))
				n, err := strconv.Atoi(strings.TrimPrefix(port, "port_value: "))
				Expect(err).NotTo(HaveOccurred())
				o.Bootstrap = bootstrap(o.AdminSocket, n, slow.Listener.Addr().String())
				o.Drain = 3 * time.Second
			})
			Eventually(s.Ready()).Should(BeClosed())
			go func(s *supervised) {
				text, err := s.get("/slow")
				if err != nil {
					text = err.Error()
				}
				answer <- text
			}(s)
			Eventually(arrived).Should(BeClosed())
		})

		It("lets it finish before it stops Envoy, and refuses new connections", func() {
			s.stop()
			Eventually(func() error { _, err := s.get("/new"); return err }).Should(MatchError(ContainSubstring("refused")))
			close(release)
			Eventually(answer).Should(Receive(Equal("200 late close=true")))
			Eventually(s.done).Should(Receive(BeNil()))
			Expect(s.log).NotTo(gbytes.Say("requests running"))
		})

		It("answers requests on a kept connection, and then has it closed", func() {
			kept, err := testkit.Bounded(net.Dial("tcp", fmt.Sprint("127.0.0.1:", s.port)))
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(kept.Close)
			read := bufio.NewReader(kept)
			ask := func() string {
				fmt.Fprintf(kept, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				resp, err := http.ReadResponse(read, nil)
				if err != nil {
					return err.Error()
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				return fmt.Sprintf("%d %s close=%t %v", resp.StatusCode, body, resp.Close, err)
			}
			Expect(ask()).To(Equal("200 late close=false <nil>"))
			other, err := testkit.Bounded(net.Dial("tcp", fmt.Sprint("127.0.0.1:", s.port)))
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(other.Close)

			s.stop()
			Eventually(func() error { _, err := s.get("/new"); return err }).Should(MatchError(ContainSubstring("refused")))
			close(release)
			Eventually(answer).Should(Receive(Equal("200 late close=true")))
			idle := time.Now()
			Expect(ask()).To(Equal("200 late close=true <nil>"), "no request is running, and Envoy is not gone")
			Eventually(s.done).Should(Receive(BeNil()))
			Expect(time.Since(idle)).To(BeNumerically(">=", 400*time.Millisecond), "the other connection could have had a request on its way")
		})

		It("waits no longer than the drain time", func() {
			DeferCleanup(func() { close(release) })
			began := time.Now()
			s.stop()
			Eventually(s.done).Should(Receive(BeNil()))
			Expect(time.Since(began)).To(BeNumerically(">=", 3*time.Second))
			Expect(s.log).To(gbytes.Say(`level=WARN msg="envoy stops with requests running" requests=1 waited=3s`))
			Eventually(answer).Should(Receive())
		})
	})

	Describe("when Envoy cannot start", func() {
		It("reports which port is taken and which flag sets it", func() {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(l.Close)
			s := run(func(o *standalone.EnvoyOptions) {
				o.Ports = []standalone.Port{{Addr: l.Addr().String(), Flag: "http-port"}}
			})
			Eventually(s.done).Should(Receive(MatchError(
				"envoy cannot listen on " + l.Addr().String() + ": address already in use: stop what uses it, or choose another address with --http-port")))
		})

		It("shows Envoy's last lines when it exits each time", func() {
			s := run(func(o *standalone.EnvoyOptions) {
				o.Bootstrap = bootstrap("/not/there/admin.sock", freePort(), "127.0.0.1:1")
			})
			Eventually(s.done).Should(Receive(MatchError(And(
				HavePrefix("envoy ended 3 times before it was ready, last with exit code 1; correct what its last lines report, or choose another Envoy with --envoy: "),
				ContainSubstring("cannot bind '/not/there/admin.sock': No such file or directory")))))
			Expect(strings.Count(string(s.log.Contents()), "is started again")).To(Equal(2))
		})

		DescribeTable("names the file",
			func(path func() string, want string) {
				file := path()
				s := run(func(o *standalone.EnvoyOptions) { o.Path = file })
				Eventually(s.done).Should(Receive(MatchError(fmt.Sprintf(want, file))))
			},
			Entry("missing", func() string { return "/not/there/envoy" },
				"there is no Envoy at %s: run `make envoy` or give another path with --envoy"),
			Entry("not executable", func() string {
				file := filepath.Join(GinkgoT().TempDir(), "envoy")
				Expect(os.WriteFile(file, []byte("#!/bin/sh\n"), 0o600)).To(Succeed())
				return file
			}, "the Envoy at %s is not an executable file: give another path with --envoy"),
			Entry("not an Envoy", func() string { return fakeEnvoy("echo Segmentation fault >&2; exit 3") },
				"%s does not run as an Envoy: exit status 3: Segmentation fault"),
		)
	})

	It("warns about another version", func() {
		s := run(func(o *standalone.EnvoyOptions) {
			o.Path = fakeEnvoy("echo envoy  version: 0123/1.20.1/Clean/RELEASE/BoringSSL; [ $1 = --version ] || exec sleep 600")
		})
		Eventually(s.log).Should(gbytes.Say(`level=WARN msg="this envoy is not the version that gatehouse is tested with" path=\S+ version=1.20.1 tested=1.39.3`))
		s.stop()
		Eventually(s.done).Should(Receive(BeNil()))
	})

	It("turns what Envoy logs into records with Envoy's level", func() {
		s := run(func(o *standalone.EnvoyOptions) {
			o.Path = fakeEnvoy(`[ $1 = --version ] && exit
printf '%s\n' '{"level":"warning","logger":"config","line":"two\nlines"}' 'not json' '{"level":"info","logger":"main","line":"fine"}' >&2
exec sleep 600`)
		})
		Eventually(s.log).Should(gbytes.Say(`level=WARN msg=envoy line="two\\nlines" logger=config`))
		Eventually(s.log).Should(gbytes.Say(`level=ERROR msg=envoy line="not json" logger=stderr`))
		Eventually(s.log).Should(gbytes.Say(`level=INFO msg=envoy line=fine logger=main`))
	})
})

// fakeEnvoy writes an Envoy that is a shell script.
func fakeEnvoy(script string) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "envoy")
	Expect(os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700)).To(Succeed())
	return file
}

// TestParent is not a test: it is the program that the next spec kills. It
// supervises an Envoy until then.
func TestParent(*testing.T) {
	if os.Getenv("GATEHOUSE_TEST_PARENT") == "" {
		return
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	dir, err := standalone.OpenRunDir(log)
	if err != nil {
		panic(err)
	}
	socket := dir.Join("admin.sock")
	e := standalone.NewEnvoy(standalone.EnvoyOptions{
		Path: program, Bootstrap: []byte("admin: {address: {pipe: {path: " + socket + "}}}"), AdminSocket: socket, Dir: dir,
		Stdout: os.Stdout, Log: log,
	})
	_ = e.Run(context.Background())
}

var _ = Describe("An Envoy whose parent is killed", func() {
	It("dies too", func() {
		out := gbytes.NewBuffer()
		parent := exec.Command(os.Args[0], "-test.run=^TestParent$", "-test.timeout=60s")
		parent.Env = append(os.Environ(), "GATEHOUSE_TEST_PARENT=1")
		parent.Stdout, parent.Stderr = out, out
		parent.WaitDelay = time.Second
		Expect(parent.Start()).To(Succeed())
		DeferCleanup(func() { _ = parent.Process.Kill() })
		pid := func() int { return lastPID(string(out.Contents())) }
		Eventually(pid).ShouldNot(BeZero())
		child := pid()
		Expect(syscall.Kill(child, 0)).To(Succeed())

		Expect(parent.Process.Kill()).To(Succeed())
		_ = parent.Wait()
		Eventually(func() string { return state(child) }).Should(BeElementOf("gone", "Z"))
	})
})

// state returns the letter of a process in /proc; an orphan that is not reaped remains
// a zombie (Z).
func state(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "gone"
	}
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
}

var _ = Describe("FindEnvoy", func() {
	It("uses the configured path", func() {
		Expect(standalone.FindEnvoy(program)).To(Equal(program))
		_, err := standalone.FindEnvoy("/not/there")
		Expect(err).To(MatchError("there is no Envoy at /not/there: run `make envoy` or give another path with --envoy"))
	})

	It("looks in PATH, and reports where it looked", func() {
		fake := fakeEnvoy("exit")
		GinkgoT().Setenv("PATH", filepath.Dir(fake))
		Expect(standalone.FindEnvoy("")).To(Equal(fake))
		GinkgoT().Setenv("PATH", "/not/there")
		_, err := standalone.FindEnvoy("")
		Expect(err).To(MatchError("no Envoy found beside the program or in PATH: run `make envoy` or give --envoy"))
	})
})
