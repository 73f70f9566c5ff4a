//go:build images

package images

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// The images, as make image and make image-control-plane name them.
const (
	standaloneImage   = "gatehouse:local"
	controlPlaneImage = "gatehouse-control-plane:local"
)

// budget is the maximum size of a compressed image, in bytes.
const budget = 180_000_000

func TestImages(t *testing.T) {
	RegisterFailHandler(Fail)
	// The machine may be busy with other tests.
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Images")
}

// limit bounds a command.
func limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	DeferCleanup(cancel)
	return ctx
}

// tryDocker returns the output of a command of the Docker client.
func tryDocker(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a cleanup may not call limit
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func docker(args ...string) string {
	GinkgoHelper()
	out, err := tryDocker(args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// inspected reads what the engine knows of an image or a container.
func inspected(name string, into any) {
	GinkgoHelper()
	var list []json.RawMessage
	Expect(json.Unmarshal([]byte(docker("inspect", name)), &list)).To(Succeed())
	Expect(list).To(HaveLen(1))
	Expect(json.Unmarshal(list[0], into)).To(Succeed())
}

func newName() string { return fmt.Sprintf("gatehouse-spec-%08x", rand.Uint32()) } //nolint:gosec // no secret

// newVolume creates a volume that is removed at the end of the spec.
func newVolume() string {
	GinkgoHelper()
	name := docker("volume", "create", newName())
	DeferCleanup(func() { _, _ = tryDocker("volume", "rm", "--force", name) })
	return name
}

// start runs a container in the background until the end of the spec. args are those of docker run.
func start(args ...string) (name string) {
	GinkgoHelper()
	name = newName()
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			log, _ := tryDocker("logs", name)
			AddReportEntry("log of "+name, log)
		}
		docker("rm", "--force", "--volumes", name)
	})
	docker(append([]string{"run", "--detach", "--name", name}, args...)...)
	return name
}

// hardened returns the arguments of docker run in README.md, and one more.
func hardened() []string {
	return []string{"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"}
}

func freePort() int {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	return port
}

// gateway is a container of the standalone image on the host's network, on free ports.
type gateway struct {
	name, volume string
	api          testkit.API
	http         string
	// args are the arguments of docker run.
	args []string
}

func standalone(more ...string) gateway {
	GinkgoHelper()
	api, http := freePort(), freePort()
	g := gateway{
		volume: newVolume(), api: testkit.API{URL: fmt.Sprint("http://127.0.0.1:", api)}, http: fmt.Sprint("127.0.0.1:", http),
	}
	g.args = append(hardened(), "--network", "host", "--volume", g.volume+":/var/lib/gatehouse",
		"--env", fmt.Sprint("GATEHOUSE_API_ADDR=127.0.0.1:", api), "--env", fmt.Sprint("GATEHOUSE_HTTP_PORT=", http),
		"--env", fmt.Sprint("GATEHOUSE_HTTPS_PORT=", freePort()),
		"--env", "GATEHOUSE_XDS_ADDR=127.0.0.1:0", "--env", "GATEHOUSE_ADMIN_ADDR=127.0.0.1:0")
	g.args = append(append(g.args, more...), standaloneImage)
	g.name = start(g.args...)
	g.awaitReady()
	return g
}

func (g gateway) awaitReady() {
	GinkgoHelper()
	Eventually(func() (testkit.Answer, error) { return g.api.Get(limit(), "/ready") }).Should(HaveField("Status", 200))
}

// route sends all requests to a backend, immediately on the connected Envoys. proxy has additional
// fields of the proxy.
func (g gateway) route(b *testkit.Backend, proxy ...string) {
	GinkgoHelper()
	for _, call := range [][]string{
		{"/upstream", "Upstream_name=web", "Upstream_ip=" + b.IP, fmt.Sprint("Upstream_port=", b.Port)},
		{"/service", "Service_Name=web", "fqdn=*"},
		{"/service/web/route", "Route_Name=root", "Route_prefix=/"},
		{"/service/web/route/root/upstream/web"},
		append([]string{"/proxy", "Name=gw"}, proxy...),
		{"/proxy/gw/service/web?wait=applied"},
	} {
		answer, err := g.api.Post(limit(), call[0], call[1:]...)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Status).To(BeElementOf(200, 201, 202), call[0]+": "+answer.Body)
	}
}

// get returns the status of a request through the gateway, and who answered.
func (g gateway) get() (string, error) {
	a, err := testkit.API{URL: "http://" + g.http}.Get(limit(), "/")
	return fmt.Sprint(a.Status, " ", a.Header.Get(testkit.BackendHeader)), err
}

func backend(name, ip string) *testkit.Backend {
	GinkgoHelper()
	b, err := testkit.StartBackend(name, testkit.BackendOptions{IP: ip})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Close)
	return b
}

// say prints a line for the user.
func say(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stdout, "\n    "+format+"\n", args...)
}
