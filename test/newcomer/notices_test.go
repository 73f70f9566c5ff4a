package newcomer_test

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The notices of an image", func() {
	notices := func(args ...string) (string, error) {
		out, err := exec.CommandContext(limit(), "../../hack/notices.sh", args...).CombinedOutput()
		return string(out), err
	}

	DescribeTable("have the license of every module in the program", func(program, moduleDir string, more ...string) {
		path, err := testkit.Binary(program)
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(GinkgoT().TempDir(), "notices", "text")
		said, err := notices(append([]string{path, file, moduleDir}, more...)...)
		Expect(err).NotTo(HaveOccurred(), said)
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		info, err := buildinfo.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(info.Deps)).To(BeNumerically(">", 40))
		for _, m := range info.Deps {
			Expect(string(text)).To(MatchRegexp(`(?m)^`+regexp.QuoteMeta(m.Path+"@"+m.Version)+`: .+$`), m.Path)
		}
		Expect(string(text)).To(And(ContainSubstring("the standard library: LICENSE\n"), ContainSubstring("Permission is hereby granted")))
		for _, name := range more {
			want, err := os.ReadFile(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).To(ContainSubstring(string(want)))
		}
	},
		Entry("the gateway", "gatehouse", "../..", "../../hack/notices/swagger-ui.txt", "../../hack/notices/site.txt", "../../hack/notices/console.txt"),
		Entry("the rate-limit engine", "ratelimit", "../../ratelimit"),
	)

	It("name the Envoy version that is used", func() {
		path, err := testkit.Binary("gatehouse")
		Expect(err).NotTo(HaveOccurred())
		out, err := exec.CommandContext(limit(), path, "version").Output()
		Expect(err).NotTo(HaveOccurred())
		_, version, _ := strings.Cut(strings.TrimSpace(string(out)), "made for Envoy ")
		text, err := os.ReadFile("../../hack/notices/envoy.txt")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring("/tree/v" + version + "/"))
	})

	It("are refused for a program without its list of modules", func() {
		file := filepath.Join(GinkgoT().TempDir(), "text")
		for program, want := range map[string]string{"/bin/sh": "is no Go program", "/not/there": "is not there; build it first"} {
			said, err := notices(program, file)
			Expect(err).To(HaveOccurred(), program)
			Expect(said).To(ContainSubstring(want))
			Expect(file).NotTo(BeAnExistingFile())
		}
	})

	It("are in both images", func() {
		for file, want := range map[string]string{
			"../../hack/image.sh":        "install -D -m 644 -t \"$1/usr/share/doc/gatehouse\" LICENSE bin/notices/gatehouse.txt\n",
			"../../ratelimit/Dockerfile": "COPY LICENSE bin/notices/ratelimit.txt /usr/share/doc/ratelimit/\n",
			"../../.dockerignore":        "!bin/notices\n",
		} {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).To(ContainSubstring(want), file)
		}
	})
})
