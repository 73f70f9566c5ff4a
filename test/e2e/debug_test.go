package e2e_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// listeningOn returns the TCP addresses on which a process listens, as /proc
// writes them.
func listeningOn(pid int) (addrs []string) {
	GinkgoHelper()
	sockets := map[string]bool{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil { // otherwise it was closed meanwhile
			sockets[to] = true
		}
	}
	const local, state, inode, listen = 1, 3, 9, "0A" // proc(5)
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		Expect(err).NotTo(HaveOccurred())
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if f[state] == listen && sockets["socket:["+f[inode]+"]"] {
				addrs = append(addrs, f[local])
			}
		}
	}
	return addrs
}

// unzipped returns the content of a profile, in which functions have their names.
func unzipped(profile string) string {
	GinkgoHelper()
	r, err := gzip.NewReader(strings.NewReader(profile))
	Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(r)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

const ownPackages = "github.com/gatehouse-gateway/gatehouse/pkg/"

var _ = Describe("The debug server", func() {
	It("does not listen unless a setting enables it", func() {
		g := serve()
		Expect(listeningOn(g.Pid())).To(HaveLen(2), "the API and xDS")
		Expect(g.Records("gatehouse is up")[0]).NotTo(HaveKey("debug"))
		a, err := g.API.Get(limit(), "/debug/pprof/")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusNotFound))
	})

	It("serves profiles of the program on a port of its own", func() {
		g, _ := standalone("--debug-addr", "127.0.0.1:0")
		Expect(g.Debug.URL).To(MatchRegexp(`^http://127\.0\.0\.1:\d+/debug/pprof$`))
		Expect(read(g.Debug, "/")).To(And(ContainSubstring("heap?debug=1"), ContainSubstring("goroutine?debug=1")))
		for _, other := range []testkit.API{g.API, g.Admin} {
			a, err := other.Get(limit(), "/debug/pprof/")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusNotFound), other.URL)
		}
		root := testkit.API{URL: strings.TrimSuffix(g.Debug.URL, "/debug/pprof")}
		for _, path := range []string{"/", "/upstream", "/metrics", "/debug/vars"} {
			a, err := root.Get(limit(), path)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusNotFound), path)
		}

		// A sample is taken every 10 ms of CPU time: write until one hits the program.
		ctx, stop := context.WithCancel(limit())
		done := make(chan struct{})
		DeferCleanup(func() { stop(); <-done })
		go func() {
			defer close(done)
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = g.API.Post(ctx, "/upstream", fmt.Sprintf("Upstream_name=u%d", i), "Upstream_ip=192.0.2.1", "Upstream_port=80")
			}
		}()
		for path, function := range map[string]string{"/profile?seconds=1": ownPackages, "/allocs": ownPackages, "/goroutine": ownPackages + "xds/pipeline.(*Loop).Run"} {
			Eventually(func() bool { return strings.Contains(unzipped(read(g.Debug, path)), function) }).Should(BeTrue(), path)
		}
	})

	It("does not start where others could reach it", func() {
		for _, addr := range []string{"0.0.0.0:0", ":6060", "192.0.2.1:6060"} {
			Expect(refuses(2, nil, "serve", "--data-dir", GinkgoT().TempDir(), "--debug-addr", addr)).To(And(
				ContainSubstring("--debug-addr: %q (from the command line) is not a loopback address", addr), ContainSubstring("ssh -L")))
		}
		Expect(refuses(2, []string{"GATEHOUSE_DEBUG_ADDR=0.0.0.0:6060"}, "standalone")).To(ContainSubstring("GATEHOUSE_DEBUG_ADDR"))
	})
})

var _ = Describe("hack/profile.sh", func() {
	It("leaves a profile of CPU and one of the heap", func() {
		out := GinkgoT().TempDir()
		// The first go tool pprof is compiled, which may take minutes on a busy machine.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "../../hack/profile.sh", "--routes", "100", "--seconds", "1", "--out", out)
		cmd.WaitDelay = 10 * time.Second // what a killed script leaves behind has its output open
		text, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(text))
		Expect(string(text)).To(And(
			ContainSubstring("CPU time"), ContainSubstring("memory in use"),
			ContainSubstring("go tool pprof -http=localhost: "+out+"/cpu.pprof"), ContainSubstring("go tool pprof -http=localhost: "+out+"/heap.pprof")))
		for name, unit := range map[string]string{"cpu.pprof": "nanoseconds", "heap.pprof": "inuse_space"} {
			profile, err := os.ReadFile(filepath.Join(out, name))
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Contains(unzipped(string(profile)), unit)).To(BeTrue(), name)
		}
	})
})
