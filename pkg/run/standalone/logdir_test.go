package standalone_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
)

var _ = Describe("A directory for access logs", func() {
	DescribeTable("is used, as a path without links, if nobody else can put files there", func(prepare func(dir string) string, want, refused string) {
		dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Mkdir(dir+"/logs", 0o750)).To(Succeed())
		var log bytes.Buffer
		got := standalone.LogDir(prepare(dir), slog.New(slog.NewTextHandler(&log, nil)))
		if refused != "" {
			Expect(got).To(BeEmpty())
			Expect(log.String()).To(And(ContainSubstring("setting=access-log-dir"), ContainSubstring(refused)))
			return
		}
		Expect(log.String()).To(BeEmpty())
		if want != "" {
			want = dir + want
		}
		Expect(got).To(Equal(want))
		Expect(os.ReadDir(dir+"/logs")).To(BeEmpty(), "it leaves no file there")
	},
		Entry("none", func(string) string { return "" }, "", ""),
		Entry("a good one", func(dir string) string { return dir + "/logs" }, "/logs", ""),
		Entry("a link to it", func(dir string) string {
			Expect(os.Symlink(dir+"/logs", dir+"/link")).To(Succeed())
			return dir + "/link"
		}, "/logs", ""),
		Entry("one that is absent", func(dir string) string { return dir + "/absent" }, "", "no such file"),
		Entry("a file", func(dir string) string {
			Expect(os.WriteFile(dir+"/file", nil, 0o600)).To(Succeed())
			return dir + "/file"
		}, "", "is not a directory"),
		Entry("one to which everybody can write", func(dir string) string {
			Expect(os.Chmod(dir+"/logs", 0o752)).To(Succeed())
			return dir + "/logs"
		}, "", "every user can write to it"),
		Entry("one that everybody can replace", func(dir string) string {
			Expect(os.Chmod(dir, 0o777)).To(Succeed())
			return dir + "/logs"
		}, "", "every user can replace it"),
		Entry("one with a link in place of a log", func(dir string) string {
			Expect(os.Symlink("/etc/passwd", dir+"/logs/a.log")).To(Succeed())
			return dir + "/logs"
		}, "", "a.log in it is not a plain file"),
		Entry("one with a pipe in place of a log", func(dir string) string {
			Expect(syscall.Mkfifo(dir+"/logs/a.log", 0o600)).To(Succeed())
			return dir + "/logs"
		}, "", "a.log in it is not a plain file"),
		Entry("one of the system, to which nothing can be written", func(string) string { return "/proc/self" }, "", "cannot be written to"),
	)
})
