package standalone_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
)

// curlLines returns the commands that the demo shows.
func curlLines(text, prefix string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, prefix); ok && strings.HasPrefix(command, "curl") {
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}

// shell runs a line as the user of the demo would.
func shell(line string) string {
	GinkgoHelper()
	out, err := exec.Command("sh", "-c", strings.Replace(line, "curl", "curl -sS", 1)).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", line, out)
	return string(out)
}

var _ = Describe("Demo", func() {
	var api, gateway string

	// background runs work until the spec ends or the returned function is called.
	background := func(work func(context.Context) error) (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			defer GinkgoRecover()
			err := work(ctx)
			done <- err
			close(done)
			Expect(err).NotTo(HaveOccurred())
		}()
		stop = func() {
			GinkgoHelper()
			cancel()
			var err error
			Eventually(done).Should(Receive(&err))
			Expect(err).NotTo(HaveOccurred())
		}
		DeferCleanup(func() {
			cancel()
			Eventually(done).Should(BeClosed())
		})
		return stop
	}
	var sent string // the token that the demo receives
	demo := func() (out *gbytes.Buffer, stop func()) {
		out = gbytes.NewBuffer()
		ready := make(chan struct{})
		close(ready)
		d := standalone.Demo{API: api, Gateway: gateway, Proxy: "edge", Token: sent, TokenText: "$TOKEN", Ready: ready, Out: io.MultiWriter(out, GinkgoWriter)}
		return out, background(d.Run)
	}

	BeforeEach(func() {
		sent = ""
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
		apiPort, httpPort := freePort(), freePort()
		api, gateway = fmt.Sprintf("http://127.0.0.1:%d", apiPort), fmt.Sprintf("http://127.0.0.1:%d", httpPort)
		cfg, _, err := config.Load(config.Standalone, map[string]string{
			"api-addr": fmt.Sprintf("127.0.0.1:%d", apiPort), "xds-addr": "127.0.0.1:0", "admin-addr": "127.0.0.1:0",
			"http-port": fmt.Sprint(httpPort), "data-dir": GinkgoT().TempDir(), "proxy": "edge", "envoy": program,
		}, nil, nil)
		Expect(err).NotTo(HaveOccurred())
		background(func(ctx context.Context) error {
			log := slog.New(slog.NewTextHandler(GinkgoWriter, nil))
			return app.Standalone(ctx, cfg, app.Env{Stdout: GinkgoWriter, Stderr: GinkgoWriter, Log: log, Version: "test"})
		})
		// The API answers before it can be used, on a machine that is slow to start it.
		Eventually(func() error { return exec.Command("curl", "-sSf", api+"/ready").Run() }).Should(Succeed())
	})

	It("configures a service, shows how, and its suggestions work", func() {
		out, stop := demo()
		Eventually(out).Should(gbytes.Say("Ctrl-C ends the gateway"))
		text := string(out.Contents())
		port := regexp.MustCompile(`Upstream_port=(\d+)`).FindStringSubmatch(text)[1]
		made := curlLines(text, "$ ")
		Expect(made).To(Equal([]string{
			"curl -sS -d Upstream_name=demo -d Upstream_ip=127.0.0.1 -d Upstream_port=" + port + " -d Upstream_hc_path=/ -d Upstream_weight=100 " + api + "/upstream",
			"curl -sS -d Service_Name=demo -d 'fqdn=*' " + api + "/service",
			"curl -sS -d Route_Name=root -d Route_prefix=/ " + api + "/service/demo/route",
			"curl -sS -X POST " + api + "/service/demo/route/root/upstream/demo",
			"curl -sS -d Name=edge " + api + "/proxy",
			"curl -sS -X POST " + api + "/proxy/edge/service/demo",
			"curl -sS " + gateway + "/",
		}))
		for _, answer := range []string{
			`201 {"data":{"insert_core_db_upstream":{"affected_rows":1}}}`,
			`201 {"data":{"insert_core_db_service":{"affected_rows":1}}}`,
			`201 {"data":{"insert_core_db_route":{"affected_rows":1}}}`,
			`201 {"data":{"insert_core_db_route_upstream":{"affected_rows":1}}}`,
			`201 {"name":"edge"}`,
			`201 {"data":{"insert_core_db_proxy_service":{"affected_rows":1}}}`,
			"200 {\n  \"backend\": \"gatehouse demo\",\n  \"method\": \"GET\",\n  \"path\": \"/\",",
		} {
			Expect(text).To(ContainSubstring("\n" + answer))
		}

		suggested := curlLines(text, "  ")
		Expect(suggested).To(HaveLen(5))
		for _, line := range suggested[:4] {
			Expect(shell(line)).To(ContainSubstring(`"affected_rows":1`))
		}
		Eventually(func() string { return shell(suggested[4]) }).Should(And(
			ContainSubstring(`"host": "hello.local"`), ContainSubstring(`"path": "/greeting"`)))

		By("running it again with the stored configuration")
		stop()
		out, stop = demo()
		Eventually(out).Should(gbytes.Say("already has a configuration: the demo adds nothing"))
		Eventually(out).Should(gbytes.Say(`runs again, at 127.0.0.1:` + port))
		Eventually(func() string { return shell("curl " + gateway + "/") }).Should(ContainSubstring("gatehouse demo"))

		By("running it while the backend's port is taken")
		third, _ := demo()
		Eventually(third).Should(gbytes.Say(`points at 127.0.0.1:` + port + `, which another program uses: address already in use`))
		stop()
	})

	It("sends a token to the API, and does not show it", func() {
		made := shell("curl -d Token_name=ann -d Token_role=admin " + api + "/token")
		sent = regexp.MustCompile(`gh_[A-Za-z0-9_-]+`).FindString(made)
		Expect(sent).NotTo(BeEmpty(), made)
		out, _ := demo()
		Eventually(out).Should(gbytes.Say("Ctrl-C ends the gateway"))
		text := string(out.Contents())
		Expect(text).NotTo(ContainSubstring(sent))
		lines := curlLines(text, "$ ")
		Expect(lines[1]).To(Equal(`curl -sS -H "Authorization: Bearer $TOKEN" -d Service_Name=demo -d 'fqdn=*' ` + api + "/service"))
		Expect(lines[6]).To(Equal("curl -sS " + gateway + "/"))
	})

	It("leaves another configuration alone", func() {
		Expect(shell("curl -d Name=other " + api + "/proxy")).To(Equal(`{"name":"other"}`))
		out, stop := demo()
		Eventually(out).Should(gbytes.Say("already has a configuration"))
		stop()
		Expect(curlLines(string(out.Contents()), "$ ")).To(BeEmpty())
	})
})
