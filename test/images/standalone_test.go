//go:build images

package images

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// block returns a block of commands of a section of README.md, each with its continuation
// lines.
func block(heading string, n int) []string {
	GinkgoHelper()
	text, err := os.ReadFile("../../README.md")
	Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	Expect(found).To(BeTrue(), heading)
	section, _, _ = strings.Cut(section, "\n## ")
	parts := strings.Split(section, "\n```\n")
	Expect(len(parts)).To(BeNumerically(">", 2*n+1), heading)
	return strings.Split(strings.ReplaceAll(parts[2*n+1], "\\\n ", ""), "\n")
}

// shell runs a line as a user types it.
func shell(dir, line string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(limit(), "sh", "-c", line)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), line+": "+string(out))
	return string(out)
}

var _ = Describe("The container of the whole gateway", func() {
	It("runs the calls of README.md and of the specification on the default ports, and has everything after a restart", func() {
		for _, port := range []int{1323, 8080, 8443, 9001, 18000} {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
			Expect(err).NotTo(HaveOccurred(), "this spec is about the default ports: stop what uses port %d of this machine", port)
			Expect(l.Close()).To(Succeed())
		}
		lines := block("One container", 1)
		Expect(lines).To(HaveLen(1))
		Expect(lines[0]).To(HavePrefix("docker run -d --name gatehouse --network host "))
		name, volume := newName(), newVolume()
		shell("", strings.NewReplacer("--name gatehouse", "--name "+name, "-v gatehouse:", "-v "+volume+":").Replace(lines[0]))
		DeferCleanup(func() { docker("rm", "--force", name) })
		api := testkit.API{URL: "http://127.0.0.1:1323"}
		g := gateway{name: name, api: api, http: "127.0.0.1:8080"}
		g.awaitReady()

		By("README.md")
		web, dir := backend("web", "127.0.0.1"), GinkgoT().TempDir()
		calls := block("From nothing to a request", 1)
		for _, call := range calls[:len(calls)-1] {
			call = strings.Replace(call, "Upstream_port=9000", fmt.Sprint("Upstream_port=", web.Port), 1)
			Expect(shell(dir, call)).To(Or(ContainSubstring(`{"affected_rows":1}`), Equal(`{"name":"gw"}`)), call)
		}
		Expect(shell(dir, calls[len(calls)-1])).To(ContainSubstring(`"Backend":"web"`))

		By("HTTPS")
		calls = block("HTTPS", 0)
		for _, call := range calls[:len(calls)-1] {
			shell(dir, call)
		}
		Expect(shell(dir, calls[len(calls)-1])).To(ContainSubstring(`"Backend":"web"`))

		By("the rate limit of the specification")
		for _, call := range []string{
			`curl -sS -d globalconfig_name=rl -d globalconfig_type=globalconfig_ratelimit --data-urlencode 'config={"domain":"d","descriptors":[{"key":"remote_address","rate_limit":{"unit":"hour","requests_per_unit":2}}]}' http://127.0.0.1:1323/globalconfig`,
			`curl -sS -d Filter_name=rl -d Filter_type=route_filter_ratelimit --data-urlencode 'Filter_config={"domain":"d","descriptors":[{"remote_address":"{{.remote_address}}"}]}' http://127.0.0.1:1323/filter`,
			`curl -sS -d Route_Name=limited -d Route_prefix=/limited http://127.0.0.1:1323/service/web/route`,
			`curl -sS -X POST http://127.0.0.1:1323/service/web/route/limited/upstream/web`,
			`curl -sS -X POST 'http://127.0.0.1:1323/service/web/route/limited/filter/rl?wait=applied'`,
		} {
			Expect(shell(dir, call)).To(ContainSubstring(`{"affected_rows":1}`), call)
		}
		status := "curl -sS -o /dev/null -w '%{http_code} ' http://127.0.0.1:8080/limited"
		Expect(shell(dir, strings.Join([]string{status, status, status}, " && "))).To(Equal("200 200 429 "))

		By("the admin port")
		Expect(shell(dir, "curl -sS -X POST 'http://127.0.0.1:9001/logging?level=trace'")).To(ContainSubstring("main: trace"))
		Expect(shell(dir, "curl -sS -X POST 'http://127.0.0.1:9001/logging?level=warning'")).NotTo(ContainSubstring("main: trace"))
		Expect(shell(dir, "curl -sS http://127.0.0.1:9001/stats")).To(ContainSubstring("cluster.web.upstream_rq_200: "))

		By("a restart")
		dump := shell(dir, "curl -sS http://127.0.0.1:1323/service/dump/web")
		document := shell(dir, "curl -sS http://127.0.0.1:1323/config")
		Expect(dump).To(ContainSubstring(`"route_name":"limited"`))
		docker("restart", name)
		g.awaitReady()
		Expect(shell(dir, "curl -sS http://127.0.0.1:1323/service/dump/web")).To(Equal(dump))
		Expect(shell(dir, "curl -sS http://127.0.0.1:1323/config")).To(Equal(document))
		Eventually(g.get).Should(Equal("200 web"))
		Expect(shell(dir, block("HTTPS", 0)[len(block("HTTPS", 0))-1])).To(ContainSubstring(`"Backend":"web"`))
	})

	It("runs as a user without privileges, and writes only to its volume", func() {
		// With a writable root file system, to see what it would write.
		volume := newVolume()
		api := freePort()
		name := start("--network", "host", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--volume", volume+":/var/lib/gatehouse",
			"--env", fmt.Sprint("GATEHOUSE_API_ADDR=127.0.0.1:", api), "--env", fmt.Sprint("GATEHOUSE_HTTP_PORT=", freePort()), "--env", fmt.Sprint("GATEHOUSE_HTTPS_PORT=", freePort()),
			"--env", "GATEHOUSE_XDS_ADDR=127.0.0.1:0", "--env", "GATEHOUSE_ADMIN_ADDR=127.0.0.1:0", standaloneImage)
		g := gateway{name: name, api: testkit.API{URL: fmt.Sprint("http://127.0.0.1:", api)}}
		g.awaitReady()
		Eventually(func() string { return docker("logs", name) }).Should(ContainSubstring("envoy is ready"))
		Expect(docker("diff", name)).To(BeEmpty())
		rows := strings.Split(docker("top", name, "-eo", "pid,user:16,args"), "\n")[1:]
		Expect(rows).To(HaveLen(2), "the program and Envoy")
		for _, row := range rows {
			status, err := os.ReadFile("/proc/" + strings.Fields(row)[0] + "/status")
			Expect(err).NotTo(HaveOccurred())
			for _, want := range []string{
				`Uid:\s+10001\s+10001\s+10001\s+10001`, `Gid:\s+10001\s+10001\s+10001\s+10001`,
				`CapPrm:\s+0+`, `CapEff:\s+0+`, `CapBnd:\s+0+`, `CapAmb:\s+0+`, `NoNewPrivs:\s+1`,
			} {
				Expect(string(status)).To(MatchRegexp(`(?m)^` + want + `$`))
			}
		}
	})

	It("is healthy when it is ready, even with TLS on the API", func() {
		dir := GinkgoT().TempDir()
		Expect(os.Chmod(dir, 0o755)).To(Succeed()) //nolint:gosec // the container's user reads it
		shell(dir, block("HTTPS", 0)[0])
		Expect(os.Chmod(filepath.Join(dir, "shop.key"), 0o644)).To(Succeed()) //nolint:gosec // the container's user reads it
		api := freePort()
		name := start(append(hardened(), "--network", "host", "--volume", dir+":/tls:ro", "--health-interval", "1s",
			"--env", fmt.Sprint("GATEHOUSE_API_ADDR=0.0.0.0:", api), "--env", "GATEHOUSE_API_TLS_CERT=/tls/shop.crt", "--env", "GATEHOUSE_API_TLS_KEY=/tls/shop.key",
			"--env", "GATEHOUSE_API_ADMIN_TOKEN=gh_0123456789abcdef0123456789abcdef",
			"--env", fmt.Sprint("GATEHOUSE_HTTP_PORT=", freePort()), "--env", fmt.Sprint("GATEHOUSE_HTTPS_PORT=", freePort()),
			"--env", "GATEHOUSE_XDS_ADDR=127.0.0.1:0", "--env", "GATEHOUSE_ADMIN_ADDR=127.0.0.1:0", standaloneImage)...)
		Eventually(health).WithArguments(name).Should(Equal("healthy"))
	})

	It("opens its ports to other networks through variables, and the API only with a token", func() {
		network := docker("network", "create", newName())
		DeferCleanup(func() { docker("network", "rm", network) })
		var net []struct {
			IPAM struct{ Config []struct{ Gateway string } }
		}
		Expect(json.Unmarshal([]byte(docker("network", "inspect", network)), &net)).To(Succeed())
		api, http := freePort(), freePort()
		args := append(hardened(), "--network", network,
			"--publish", fmt.Sprintf("127.0.0.1:%d:1323", api), "--publish", fmt.Sprintf("127.0.0.1:%d:8080", http),
			"--env", "GATEHOUSE_API_ADDR=0.0.0.0:1323", "--env", "GATEHOUSE_LISTEN_IP=0.0.0.0")

		By("without a token")
		name := start(append(args, standaloneImage)...)
		Expect(docker("wait", name)).To(Equal("2"))
		Expect(docker("logs", name)).To(ContainSubstring("--api-addr 0.0.0.0:1323 is not a loopback address and the REST API has no token, so everybody who reaches it could change everything"))
		docker("rm", name)

		By("with a token")
		const token = "gh_0123456789abcdef0123456789abcdef"
		start(append(args, "--env", "GATEHOUSE_API_ADMIN_TOKEN="+token, standaloneImage)...)
		g := gateway{api: testkit.API{URL: fmt.Sprint("http://127.0.0.1:", api)}, http: fmt.Sprint("127.0.0.1:", http)}
		g.awaitReady()
		answer, err := g.api.Get(limit(), "/service")
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Status).To(Equal(401))
		web := backend("web", net[0].IPAM.Config[0].Gateway)
		header := " -H 'Authorization: Bearer " + token + "' "
		for _, call := range block("From nothing to a request", 1)[:6] {
			call = strings.NewReplacer("curl -sS", "curl -sS"+header, "127.0.0.1:1323", fmt.Sprint("127.0.0.1:", api),
				"Upstream_ip=127.0.0.1", "Upstream_ip="+web.IP, "Upstream_port=9000", fmt.Sprint("Upstream_port=", web.Port)).Replace(call)
			Expect(shell("", call)).To(Or(ContainSubstring(`{"affected_rows":1}`), Equal(`{"name":"gw"}`)), call)
		}
		Eventually(g.get).Should(Equal("200 web"))
	})

	It("continues after docker kill", func() {
		g := standalone()
		g.route(backend("web", "127.0.0.1"))
		Eventually(g.get).Should(Equal("200 web"))
		docker("kill", g.name)
		Expect(docker("inspect", "--format", "{{.State.ExitCode}}", g.name)).To(Equal("137"))
		docker("start", g.name)
		g.awaitReady()
		Eventually(g.get).Should(Equal("200 web"))
	})

	It("reaps orphans as process 1, and still knows how its Envoy ended", func() {
		dir := GinkgoT().TempDir()
		Expect(os.Chmod(dir, 0o755)).To(Succeed()) //nolint:gosec // the container's user reads it
		build := exec.CommandContext(limit(), "go", "build", "-o", filepath.Join(dir, "orphan"), "./orphan")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		g := standalone("--volume", dir+":/spec:ro")
		for range 10 {
			Expect(docker("exec", g.name, "/spec/orphan")).To(MatchRegexp(`^\d+$`))
		}
		init := docker("inspect", "--format", "{{.State.Pid}}", g.name)
		Eventually(func() []string { return childrenOf(init) }).Should(ConsistOf(MatchRegexp(`^envoy [^Z]$`)))

		rows := docker("top", g.name, "-eo", "pid,comm")
		envoy := regexp.MustCompile(`(?m)^\s*(\d+)\s+envoy$`).FindStringSubmatch(rows)
		Expect(envoy).To(HaveLen(2), rows)
		shell("", "kill -KILL "+envoy[1])
		Eventually(func() string { return docker("logs", g.name) }).Should(ContainSubstring(`"envoy exited and is started again","exit":"signal 9 (killed)"`))
	})

	It("starts in little more time than its Envoy", func() {
		g := standalone()
		g.route(backend("web", "127.0.0.1"))
		Eventually(g.get).Should(Equal("200 web"))
		docker("stop", g.name)
		docker("rm", g.name)
		cold := firstAnswer(g.http, g.args...)

		dir := GinkgoT().TempDir()
		Expect(os.Chmod(dir, 0o755)).To(Succeed()) //nolint:gosec // the container's user reads it
		port := freePort()
		Expect(os.WriteFile(filepath.Join(dir, "envoy.yaml"), fmt.Appendf(nil, direct, port), 0o644)).To(Succeed()) //nolint:gosec // as above
		floor := firstAnswer(fmt.Sprint("127.0.0.1:", port), append(hardened(), "--network", "host", "--volume", dir+":/spec:ro", "--entrypoint", "envoy",
			standaloneImage, "-c", "/spec/envoy.yaml", "--disable-hot-restart")...)
		say("cold start, docker run to the first routed request: %d ms; Envoy alone, with a static configuration: %d ms", cold.Milliseconds(), floor.Milliseconds())
	})
})

// childrenOf lists the children of a process by name and state; docker top has no zombies.
func childrenOf(parent string) (list []string) {
	GinkgoHelper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	Expect(err).NotTo(HaveOccurred())
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// "17 (name) Z 1 ..."
		found := regexp.MustCompile(`^\d+ \((.*)\) (\S) (\d+) `).FindStringSubmatch(string(stat))
		if len(found) == 4 && found[3] == parent {
			list = append(list, found[1]+" "+found[2])
		}
	}
	return list
}

// direct is an Envoy that answers directly.
const direct = `
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: %d}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: floor
          http_filters:
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}
`

// firstAnswer returns the time from docker run until an address answers 200.
func firstAnswer(addr string, args ...string) time.Duration {
	GinkgoHelper()
	began := time.Now()
	name := newName()
	DeferCleanup(func() { docker("rm", "--force", "--volumes", name) })
	run := exec.CommandContext(limit(), "docker", append([]string{"run", "--detach", "--name", name}, args...)...)
	Expect(run.Start()).To(Succeed())
	Eventually(func() (testkit.Answer, error) { return testkit.API{URL: "http://" + addr}.Get(limit(), "/") }).
		WithPolling(2 * time.Millisecond).Should(HaveField("Status", 200))
	took := time.Since(began)
	Expect(run.Wait()).To(Succeed())
	return took
}
