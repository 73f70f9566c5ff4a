package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("gatehouse standalone --demo", func() {
	It("shows its calls and an answer through Envoy, and its suggestions work", func() {
		dir := GinkgoT().TempDir()
		args := append(standaloneArgs(dir, freePort()), "--demo", "--access-log", "off")
		g := start(nil, args...)
		Eventually(g.Stdout.String).Should(ContainSubstring("Ctrl-C ends the gateway"))

		out := g.Stdout.String()
		setUp, suggested, found := strings.Cut(out, "Try next")
		Expect(found).To(BeTrue(), out)
		var shown []string
		lines := strings.Split(setUp, "\n")
		for i, line := range lines {
			if strings.HasPrefix(line, "$ curl ") {
				shown = append(shown, line[strings.LastIndex(line, " ")+1:]+" -> "+lines[i+1])
			}
		}
		gateway := shown[len(shown)-1]
		Expect(shown).To(Equal([]string{
			g.API.URL + `/upstream -> 201 {"data":{"insert_core_db_upstream":{"affected_rows":1}}}`,
			g.API.URL + `/service -> 201 {"data":{"insert_core_db_service":{"affected_rows":1}}}`,
			g.API.URL + `/service/demo/route -> 201 {"data":{"insert_core_db_route":{"affected_rows":1}}}`,
			g.API.URL + `/service/demo/route/root/upstream/demo -> 201 {"data":{"insert_core_db_route_upstream":{"affected_rows":1}}}`,
			g.API.URL + `/proxy -> 201 {"name":"gw"}`,
			g.API.URL + `/proxy/gw/service/demo -> 201 {"data":{"insert_core_db_proxy_service":{"affected_rows":1}}}`,
			gateway,
		}), out)
		Expect(gateway).To(HaveSuffix(" -> 200 {"))
		Expect(setUp).To(MatchRegexp(`(?i)"x-forwarded-proto"`), "the answer came through Envoy")

		var try []string
		for line := range strings.SplitSeq(suggested, "\n") {
			if call, ok := strings.CutPrefix(line, "  curl "); ok {
				try = append(try, call)
			}
		}
		Expect(try).To(HaveLen(5), "a second service in four calls, and a request to it")
		for _, call := range try[:4] {
			Expect(shellCurl(call)).To(ContainSubstring(`{"affected_rows":1}`), call)
		}
		Eventually(shellCurl).WithArguments(try[4]).Should(And(ContainSubstring(`"host": "hello.local"`), ContainSubstring(`"path": "/greeting"`)))

		// The second time there is a configuration already.
		before := read(g.API, "/service")
		Expect(g.Stop(limit())).To(BeZero())
		g = start(nil, args...)
		Eventually(g.Stdout.String).Should(ContainSubstring("the demo adds nothing"))
		Eventually(shellCurl).WithArguments(try[4]).Should(ContainSubstring(`"host": "hello.local"`))
		Expect(read(g.API, "/service")).To(Equal(before))
	})
})

// boxed returns the lines of the box at the end of a text.
func boxed(text string) []string {
	GinkgoHelper()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	border := lines[len(lines)-1]
	Expect(border).To(MatchRegexp(`^\+-+\+$`), text)
	var inside []string
	for i := len(lines) - 2; lines[i] != border; i-- {
		Expect(lines[i]).To(HaveLen(len(border)), text)
		line := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(lines[i], "| "), "|"))
		inside = append([]string{line}, inside...)
	}
	return inside
}

var _ = Describe("gatehouse standalone --demo on a terminal", func() {
	It("shows its calls without log lines, ends with a box, and names the log file", func() {
		dir, http, api, admin := GinkgoT().TempDir(), freePort(), freePort(), freePort()
		run := func(more ...string) (text string) {
			GinkgoHelper()
			p, err := testkit.SpawnOnTerminal(nil, append([]string{
				"standalone", "--demo", "--data-dir", dir, "--http-port", strconv.Itoa(http), "--xds-addr", "127.0.0.1:0",
				"--api-addr", "127.0.0.1:" + strconv.Itoa(api), "--admin-addr", "127.0.0.1:" + strconv.Itoa(admin),
			}, more...)...)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(p.Kill)
			Eventually(p.Stdout.String).Should(MatchRegexp(`Ctrl-C ends the gateway[^\n]*\n\+-+\+\n`))
			text = p.Stdout.String()
			Expect(p.Signal(syscall.SIGINT)).To(Succeed())
			Expect(p.Wait(limit())).To(BeZero())
			return text
		}
		text := run()
		Expect(text).NotTo(Or(ContainSubstring("level="), ContainSubstring("response_code"), ContainSubstring("\r")))
		apiURL, gateway := "http://127.0.0.1:"+strconv.Itoa(api), "http://127.0.0.1:"+strconv.Itoa(http)
		log := filepath.Join(dir, "demo.log")
		binary, err := testkit.Binary("gatehouse")
		Expect(err).NotTo(HaveOccurred())
		want := []string{
			"Gateway  " + gateway + "/",
			"HTTPS    https://127.0.0.1:8443/ for services with a certificate",
			"API      " + apiURL + "/",
			"Docs     " + apiURL + "/docs",
			"Log      " + log,
			"",
			"Next     " + binary + " status --server " + apiURL,
			binary + " explain gw " + gateway + "/ --server " + apiURL,
			"",
			"Ctrl-C ends the gateway; the configuration stays.",
		}
		Expect(boxed(text)).To(Equal(want))
		written, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(written)).To(And(ContainSubstring("gatehouse is up"), ContainSubstring("path=/service/demo/route "), ContainSubstring(`"response_code":200`)))

		By("the second time")
		text = run()
		Expect(text).To(ContainSubstring("the demo adds nothing"))
		Expect(boxed(text)).To(Equal(want))
		again, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(again)).To(HavePrefix(string(written)))

		By("with the log on request")
		Expect(run("--log-level", "info")).To(ContainSubstring("gatehouse is up"))
	})
})

// shellCurl runs a curl line as a user who pastes it into a shell.
func shellCurl(line string) (string, error) {
	out, err := exec.CommandContext(limit(), "sh", "-c", "curl -sS "+line).Output()
	return string(out), err
}
