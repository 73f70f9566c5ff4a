package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// logDir returns a directory for access logs, without the links in its path.
func logDir() string {
	GinkgoHelper()
	dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	return dir
}

// logged returns the lines of all files in a directory for access logs. Each is whole; one that Envoy is about to write is
// left out.
func logged(dir string) (lines []map[string]any) {
	GinkgoHelper()
	files, err := filepath.Glob(dir + "/*.log*")
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		for line := range strings.Lines(string(text[:bytes.LastIndexByte(text, '\n')+1])) {
			var fields map[string]any
			Expect(json.Unmarshal([]byte(line), &fields)).To(Succeed(), line)
			lines = append(lines, fields)
		}
	}
	return lines
}

// paths returns the paths of requests in lines.
func paths(lines []map[string]any) (list []any) {
	for _, l := range lines {
		list = append(list, l["path"])
	}
	return list
}

// toFile has the proxy write a log to a file, and returns when it is live.
func (g gateway) toFile(name string) {
	GinkgoHelper()
	a, err := g.api.Do(limit(), http.MethodPut, "/globalconfig/"+name+"?wait=applied", "application/json",
		`{"globalconfig_type":"globalconfig_accesslog","config":{"file":true}}`)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
}

var _ = Describe("An access log in a file", func() {
	var (
		g  *testkit.Gatehouse
		gw gateway
	)
	BeforeEach(func() {
		g = serve()
		gw = gateway{g.API, freePort()}
		specificationCalls(through(g.API), backend("blue"), "Http_port="+strconv.Itoa(gw.port), "Listen_ip=127.0.0.1")
	})
	noDirectory := func() string { return read(g.API, "/status") }

	DescribeTable("loses no line while it is rotated under traffic", func(more ...string) {
		dir := logDir()
		e := located(g.XDSAddr, append([]string{"--access-log-dir", dir}, more...)...)
		gw.toFile("shop")
		Expect(noDirectory()).NotTo(ContainSubstring("NoLogDirectory"))
		traffic, stop := gw.traffic("shop.example", 500)
		for i := range 5 {
			await(traffic, 300)
			Expect(os.Rename(dir+"/shop.log", fmt.Sprintf("%s/shop.log.%d", dir, i))).To(Succeed())
			Expect(e.Signal(syscall.SIGUSR1)).To(Succeed())
			Eventually(dir + "/shop.log").Should(BeAnExistingFile())
		}
		stop()
		Eventually(func() int { return len(logged(dir)) }).Should(Equal(traffic.Report().Requests))
		Consistently(func() int { return len(logged(dir)) }).Should(Equal(traffic.Report().Requests))
		Expect(e.Stdout.String()).NotTo(ContainSubstring("start_time"))
	},
		Entry("by Envoy itself"),
		Entry("by its parent", "--drain-time", "5s"),
	)

	It("costs no request while its disk is full or its directory is gone, and continues after that", func() {
		dir := logDir()
		e := located(g.XDSAddr, "--access-log-dir", dir)
		gw.toFile("shop")
		traffic, stop := gw.traffic("shop.example", 500)
		more := func() { await(traffic, 300) }
		stat := func(name string) string { return read(e.admin, "/stats?filter=^filesystem."+name+"$") }
		more()
		By("a full disk")
		Expect(os.Remove(dir + "/shop.log")).To(Succeed())
		Expect(os.Symlink("/dev/full", dir+"/shop.log")).To(Succeed())
		Expect(e.Signal(syscall.SIGUSR1)).To(Succeed())
		Eventually(stat).WithArguments("write_failed").Should(MatchRegexp(": [1-9]"))
		more()
		By("no directory")
		Expect(os.RemoveAll(dir)).To(Succeed())
		Expect(e.Signal(syscall.SIGUSR1)).To(Succeed())
		Eventually(stat).WithArguments("reopen_failed").Should(MatchRegexp(": [1-9]"))
		more()
		By("a directory again")
		Expect(os.Mkdir(dir, 0o700)).To(Succeed())
		Eventually(func() []map[string]any { return logged(dir) }).ShouldNot(BeEmpty())
		stop()
	})

	It("goes to standard output where Envoy was not told of a directory, or that cannot be used", func() {
		dir := logDir()
		for what, flags := range map[string][]string{
			"none":                              nil,
			"no such file or directory":         {"--access-log-dir", dir + "/absent"},
			"every user can write to it":        {"--access-log-dir", dir + "/open"},
			"a.log in it is not a plain file":   {"--access-log-dir", dir + "/pipe"},
			"b.log in it is not a plain file":   {"--access-log-dir", dir + "/link"},
			"every user can replace it, since ": {"--access-log-dir", dir + "/open/below"},
		} {
			for _, d := range []string{"open/below", "pipe", "link"} {
				Expect(os.MkdirAll(filepath.Join(dir, d), 0o700)).To(Succeed())
			}
			Expect(os.Chmod(dir+"/open", 0o707)).To(Succeed())
			_ = syscall.Mkfifo(dir+"/pipe/a.log", 0o600)
			_ = os.Symlink("/etc/passwd", dir+"/link/b.log")
			e := located(g.XDSAddr, flags...)
			gw.toFile("shop")
			gw.expect("shop.example", "/x", "blue")
			Eventually(e.Stdout.String).Should(ContainSubstring(`"path":"/x"`), what)
			Eventually(noDirectory).Should(ContainSubstring("globalconfig shop writes to a file, and the Envoys at 127.0.0.1:"), what)
			if flags != nil {
				Expect(e.Stderr.String()).To(ContainSubstring(what))
			}
			Expect(e.Kill()).To(Succeed())
			Eventually(noDirectory).ShouldNot(ContainSubstring("NoLogDirectory"), what)
		}
	})

	It("goes to standard output if Envoy cannot open the file later, instead of keeping its listeners", func() {
		dir := logDir()
		e := located(g.XDSAddr, "--access-log-dir", dir)
		gw.expect("shop.example", "/", "blue")
		Expect(os.RemoveAll(dir)).To(Succeed())
		_, err := g.API.Do(limit(), http.MethodPut, "/globalconfig/shop", "application/json", `{"globalconfig_type":"globalconfig_accesslog","config":{"file":true}}`)
		Expect(err).NotTo(HaveOccurred())
		Eventually(noDirectory).Should(And(ContainSubstring("NoLogDirectory"), Not(ContainSubstring("Rejected"))))
		gw.expect("shop.example", "/y", "blue")
		Eventually(e.Stdout.String).Should(ContainSubstring(`"path":"/y"`))
	})

	It("has the lines of one Envoy, if two proxies of a machine have a directory each", func() {
		dir, otherDir, second := logDir(), logDir(), gateway{g.API, freePort()}
		post(g.API, "/proxy", "Name=other", "Http_port="+strconv.Itoa(second.port), "Listen_ip=127.0.0.1")
		post(g.API, "/proxy/other/service/shop")
		located(g.XDSAddr, "--access-log-dir", dir)
		other, err := testkit.SpawnGatehouse(nil, "envoy", "--proxy", "other", "--xds-addr", g.XDSAddr, "--admin-addr", "127.0.0.1:0", "--access-log-dir", otherDir)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(other.Kill)
		second.expect("shop.example", "/", "blue")
		gw.toFile("shop")
		lines := func() []int { return []int{len(logged(dir)), len(logged(otherDir))} }
		one, stopOne := gw.traffic("shop.example", 300)
		two, stopTwo := second.traffic("shop.example", 300)
		await(one, 1000)
		stopOne()
		stopTwo()
		Eventually(lines).Should(Equal([]int{one.Report().Requests, two.Report().Requests}))
	})

	It("is rotated by SIGUSR1 in standalone, too", func() {
		dir := logDir()
		s, own, _ := shop("--access-log-dir", dir)
		own.toFile("shop")
		own.get("shop.example", "/first")
		Eventually(func() []any { return paths(logged(dir)) }).Should(ConsistOf("/first"))
		Expect(os.Rename(dir+"/shop.log", dir+"/shop.log.1")).To(Succeed())
		Expect(s.Signal(syscall.SIGUSR1)).To(Succeed())
		Eventually(dir + "/shop.log").Should(BeAnExistingFile())
		own.get("shop.example", "/second")
		Eventually(func() []any { return paths(logged(dir)) }).Should(ConsistOf("/first", "/second"))
	})

	It("is refused with what is wrong", func() {
		long := strings.Repeat("a", 201)
		for name, refused := range map[string]string{"shop": `{"file":true,"upstream":"blue"}`, long: `{"file":true}`} {
			a, err := g.API.Do(limit(), http.MethodPut, "/globalconfig/"+name, "application/json", `{"globalconfig_type":"globalconfig_accesslog","config":`+refused+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusBadRequest))
			Expect(fieldsOf(a.Body)).To(Equal([]string{"config.file"}), a.Body)
		}
	})
})
