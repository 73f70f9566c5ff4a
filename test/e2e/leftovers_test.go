package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// inTemp returns the arguments of a gateway, and the environment with its own directory
// for temporary files.
func inTemp(temp string) (env, args []string) {
	GinkgoHelper()
	return []string{"TMPDIR=" + temp}, standaloneArgs(GinkgoT().TempDir(), freePort())
}

// entries returns the names in a directory, including those that a shell's * omits.
func entries(dir string) []string {
	GinkgoHelper()
	list, err := os.ReadDir(dir)
	Expect(err).NotTo(HaveOccurred())
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names
}

var _ = Describe("The directory for temporary files", func() {
	It("is unchanged after the gateway has stopped", func() {
		temp := GinkgoT().TempDir()
		env, args := inTemp(temp)
		g := start(env, args...)
		Eventually(g.Records).WithArguments("envoy is ready").ShouldNot(BeEmpty())
		Expect(entries(temp)).To(HaveLen(1))
		Expect(g.Stop(limit())).To(BeZero())
		Expect(entries(temp)).To(BeEmpty())
	})

	It("contains nothing of killed gateways after the next start, and everything of a running one", func() {
		temp := GinkgoT().TempDir()
		env, args := inTemp(temp)
		living := start(env, args...)
		Eventually(living.Records).WithArguments("envoy is ready").ShouldNot(BeEmpty())
		own := entries(temp)
		for range 3 {
			env, args := inTemp(temp)
			killed := start(env, args...)
			Expect(killed.Kill()).To(Succeed())
		}
		By("somebody else's directory with such a name, and a link with such a name, are left alone")
		other := filepath.Join(GinkgoT().TempDir(), "kept")
		Expect(os.Mkdir(other, 0o700)).To(Succeed())
		Expect(os.Symlink(other, filepath.Join(temp, "gatehouse-run-link"))).To(Succeed())
		foreign := filepath.Join(temp, "gatehouse-run-foreign")
		Expect(os.Mkdir(foreign, 0o700)).To(Succeed())
		Expect(os.Chown(foreign, 12345, 12345)).To(Succeed())

		env, args = inTemp(temp)
		g := start(env, args...)
		Eventually(g.Records).WithArguments("envoy is ready").ShouldNot(BeEmpty())
		Expect(entries(temp)).To(HaveLen(4), "the running one's, the new one's, and the two that are not ours")
		Expect(entries(temp)).To(ContainElements(own[0], "gatehouse-run-link", "gatehouse-run-foreign"))
		Expect(other).To(BeADirectory())
		Expect(read(adminOf(living), "/ready")).To(Equal("LIVE\n"))
	})

	It("may have a path that is too long for a socket", func() {
		temp := filepath.Join(GinkgoT().TempDir(), strings.Repeat("long/", 40))
		Expect(os.MkdirAll(temp, 0o700)).To(Succeed())
		env, args := inTemp(temp)
		g := start(env, args...)
		Eventually(g.Records).WithArguments("envoy is ready").ShouldNot(BeEmpty())
		Expect(read(adminOf(g), "/ready")).To(Equal("LIVE\n"))
	})
})

// warnings returns the log records of a program above level info.
func warnings(g *testkit.Gatehouse) []string {
	GinkgoHelper()
	var list []string
	for _, line := range g.Stderr.Lines() {
		var record struct{ Level string }
		Expect(json.Unmarshal([]byte(line), &record)).To(Succeed(), line)
		if record.Level != "INFO" {
			list = append(list, line)
		}
	}
	return list
}

var _ = DescribeTable("A clean shutdown logs no warning", func(signal syscall.Signal) {
	g, gw, _ := shop()
	Expect(gw.get("shop.example", "/").Status).To(Equal(200))
	Expect(g.Signal(signal)).To(Succeed())
	Expect(g.Wait(limit())).To(BeZero())
	Expect(warnings(g)).To(BeEmpty())

	plane := serve()
	envoyFor("gw", plane.XDSAddr)
	Expect(plane.Signal(signal)).To(Succeed())
	Expect(plane.Wait(limit())).To(BeZero())
	Expect(warnings(plane)).To(BeEmpty())
},
	Entry("after Ctrl-C", syscall.SIGINT),
	Entry("after SIGTERM", syscall.SIGTERM),
)
