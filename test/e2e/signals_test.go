package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("SIGHUP", func() {
	BeforeEach(func() {
		// Programs inherit ignored signals, as from nohup, but no handlers.
		handled := make(chan os.Signal, 1)
		signal.Notify(handled, syscall.SIGHUP)
		DeferCleanup(signal.Stop, handled)
	})

	It("stops a gateway as SIGTERM does, even if it arrives twice: requests are answered first", func() {
		g, gw, blue := shop()
		answer, before := make(chan string, 1), blue.Requests()
		go func() { answer <- gw.answers("shop.example", "/?delay=2s") }()
		Eventually(blue.Requests).Should(Equal(before + 1))
		// A shell and the kernel send one each when a terminal is closed.
		Expect(g.Signal(syscall.SIGHUP)).To(Succeed())
		Eventually(gw.answers).WithArguments("shop.example", "/").Should(ContainSubstring("connection refused"))
		Expect(g.Signal(syscall.SIGHUP)).To(Succeed())
		Expect(g.Wait(limit())).To(BeZero(), g.Stderr.String())
		Expect(<-answer).To(Equal("blue"))
	})

	It("stops a control plane cleanly", func() {
		g := serve()
		envoyFor("gw", g.XDSAddr)
		Expect(g.Signal(syscall.SIGHUP)).To(Succeed())
		Expect(g.Wait(limit())).To(BeZero(), g.Stderr.String())
		Expect(g.Records("stopping")).To(HaveLen(1))
	})

	It("is ignored under nohup", func() {
		signal.Ignore(syscall.SIGHUP) // as nohup does; child processes inherit it
		defer signal.Reset(syscall.SIGHUP)
		g := serve()
		Expect(g.Signal(syscall.SIGHUP)).To(Succeed())
		Expect(g.Signal(syscall.SIGUSR1)).To(Succeed())
		Eventually(g.Records).WithArguments("settings read again").ShouldNot(BeEmpty())
		Expect(read(g.API, "/health")).To(ContainSubstring("ok"))
	})
})

var _ = Describe("SIGUSR1", func() {
	It("reads the log level again", func() {
		file := filepath.Join(GinkgoT().TempDir(), "gatehouse.yaml")
		write := func(text string) {
			GinkgoHelper()
			Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
		}
		write("log-level: warn\n")
		addr := fmt.Sprintf("127.0.0.1:%d", freePort())
		p, err := testkit.SpawnGatehouse(nil, "serve", "--config", file, "--data-dir", GinkgoT().TempDir(), "--api-addr", addr, "--xds-addr", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(p.Kill)
		g := &testkit.Gatehouse{Process: p, API: testkit.API{URL: "http://" + addr}}
		Expect(g.WaitReady(limit())).To(Succeed())
		Expect(g.Stderr.String()).To(BeEmpty())

		write("log-level: debug\n")
		Expect(p.Signal(syscall.SIGUSR1)).To(Succeed())
		Eventually(g.Records).WithArguments("settings read again").Should(HaveLen(1))
		Expect(g.Records("settings read again")[0]).To(HaveKeyWithValue("log_level", "debug"))

		write("log-level: loud\n")
		Expect(p.Signal(syscall.SIGUSR1)).To(Succeed())
		Eventually(g.Records).WithArguments("settings not read again, the old ones stay").Should(HaveLen(1))
		Expect(p.Stop(limit())).To(BeZero())
	})
})

var _ = Describe("A gateway whose log nobody reads anymore", func() {
	It("continues to serve", func() {
		program, err := testkit.Binary("gatehouse")
		Expect(err).NotTo(HaveOccurred())
		reader, writer, err := os.Pipe()
		Expect(err).NotTo(HaveOccurred())
		cmd := exec.Command(program, "serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")
		cmd.Stderr = writer
		Expect(cmd.Start()).To(Succeed())
		DeferCleanup(func() { _ = cmd.Process.Kill() })
		Expect(writer.Close()).To(Succeed())
		var up struct{ Msg, API string }
		for lines := bufio.NewScanner(reader); up.Msg != "gatehouse is up"; {
			Expect(lines.Scan()).To(BeTrue())
			Expect(json.Unmarshal(lines.Bytes(), &up)).To(Succeed())
		}
		Expect(reader.Close()).To(Succeed())

		api := testkit.API{URL: up.API}
		for _, name := range []string{"a", "b", "c"} { // each logs a line
			post(api, "/service", "Service_Name="+name, "fqdn="+name+".example")
		}
		Expect(read(api, "/service/c")).To(ContainSubstring("c.example"))
		Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(cmd.Wait()).To(Succeed())
	})
})
