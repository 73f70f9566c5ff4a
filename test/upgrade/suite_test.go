//go:build upgrade

package upgrade

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestUpgrade(t *testing.T) {
	RegisterFailHandler(Fail)
	// The machine may be busy with other tests.
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Upgrades")
}

func limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	DeferCleanup(cancel)
	return ctx
}

// version is a program of one version.
type version string

const (
	previous version = "previous/gatehouse"
	current  version = "gatehouse"
)

func (v version) path() string {
	GinkgoHelper()
	path, err := testkit.Binary(string(v))
	Expect(err).NotTo(HaveOccurred())
	return path
}

// start runs the program until it is ready.
func (v version) start(args ...string) *testkit.Gatehouse {
	GinkgoHelper()
	g, err := testkit.StartGatehouseAt(limit(), v.path(), nil, args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		_ = g.Kill()
		Expect(g.Stderr.String()).NotTo(Or(ContainSubstring("goroutine "), ContainSubstring("panic")))
	})
	Expect(g.WaitReady(limit())).To(Succeed(), g.Stderr.String())
	return g
}

// run runs a command, and returns its exit code and what it says.
func (v version) run(args ...string) (code int, output string) {
	GinkgoHelper()
	cmd := exec.CommandContext(limit(), v.path(), args...) //nolint:gosec // a program of this repository
	out, err := cmd.CombinedOutput()
	Expect(err).To(Or(BeNil(), BeAssignableToTypeOf(&exec.ExitError{})))
	return cmd.ProcessState.ExitCode(), string(out)
}

// refuses runs a server that must not start, and returns the line that says why.
func (v version) refuses(args ...string) string {
	GinkgoHelper()
	code, output := v.run(args...)
	Expect(code).To(Equal(1), output)
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(output), "\n"), func(l string) bool { return strings.HasPrefix(l, "{") })
	Expect(lines).To(HaveLen(1), output)
	return lines[0]
}

func stop(g *testkit.Gatehouse) {
	GinkgoHelper()
	Expect(g.Stop(limit())).To(BeZero(), g.Stderr.String())
}

func freePort() int {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	return port
}

func backend(name string, o testkit.BackendOptions) *testkit.Backend {
	GinkgoHelper()
	b, err := testkit.StartBackend(name, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Close)
	return b
}

// envoy runs an Envoy with a bootstrap of the version before.
func envoy(proxy, xdsAddr string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	code, bootstrap := previous.run("bootstrap", "--proxy", proxy, "--xds-addr", xdsAddr, "--admin-socket", filepath.Join(dir, "admin.sock"))
	Expect(code).To(BeZero(), bootstrap)
	e, err := testkit.RunEnvoy(limit(), dir, bootstrap)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Kill)
}

// call makes a call that must succeed, and returns its answer.
func call(api testkit.API, method, path, contentType, body string) string {
	GinkgoHelper()
	a, err := api.Do(limit(), method, path, contentType, body)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), "%s %s: %s", method, path, a.Body)
	return a.Body
}

// gateway is the port of an Envoy.
type gateway int

// answers returns who answers: the name of the backend, or the status if there is none.
func (g gateway) answers(target string, header ...string) string {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(int(g))+target, http.NoBody)
	if err != nil {
		return err.Error()
	}
	req.Host = "shop.example"
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	a, err := testkit.Send(req)
	switch {
	case err != nil:
		return err.Error()
	case a.Status != http.StatusOK:
		return strconv.Itoa(a.Status)
	}
	return a.Header.Get(testkit.BackendHeader)
}

func (g gateway) expect(want, target string, header ...string) {
	GinkgoHelper()
	Eventually(func() string { return g.answers(target, header...) }).Should(Equal(want), target)
}

// traffic sends 200 requests a second, until stop, which checks that all were answered.
func (g gateway) traffic() (stop func()) {
	t := testkit.StartTraffic(testkit.TrafficOptions{Addr: fmt.Sprintf("127.0.0.1:%d", g), Host: "shop.example", Rate: 200})
	DeferCleanup(t.Stop)
	return func() {
		GinkgoHelper()
		report := t.Stop()
		AddReportEntry("traffic", report.String())
		Expect(report.Failures).To(BeEmpty(), report.String())
		Expect(report.Requests).To(BeNumerically(">", 0))
	}
}
