package standalone_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
)

var _ = Describe("An Envoy in the foreground", func() {
	BeforeEach(func() {
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
	})
	run := func(ctx context.Context, script string, f standalone.Foreground) (int, *gbytes.Buffer) {
		GinkgoHelper()
		log := gbytes.NewBuffer()
		code, err := standalone.RunForeground(ctx, standalone.EnvoyOptions{
			Path: fakeEnvoy(script), AdminSocket: "/not/there", Log: slog.New(slog.NewTextHandler(log, nil)),
		}, f)
		Expect(err).NotTo(HaveOccurred())
		return code, log
	}

	DescribeTable("returns its exit code",
		func(script string, want int) {
			code, _ := run(context.Background(), script, standalone.Foreground{})
			Expect(code).To(Equal(want))
		},
		Entry("none", "exit 0", 0),
		Entry("one", "exit 7", 7),
		Entry("of a signal", "kill -9 $$", 137),
	)

	It("receives its arguments, its environment and its files, and nothing else", func() {
		out := filepath.Join(GinkgoT().TempDir(), "out")
		file, err := os.Create(filepath.Join(GinkgoT().TempDir(), "in"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(file.Close)
		Expect(file.WriteString("the file\n")).To(Equal(9))
		code, _ := run(context.Background(), `{ echo "$@"; echo "$A"; echo "$HOME"; cat /dev/fd/3; } > `+out, standalone.Foreground{
			Args: []string{"-c", "/dev/fd/3"}, Env: []string{"A=b", "PATH=/bin:/usr/bin"}, Files: []*os.File{file},
		})
		Expect(code).To(BeZero())
		Expect(os.ReadFile(out)).To(Equal([]byte("-c /dev/fd/3\nb\n\nthe file\n")))
	})

	It("receives SIGUSR1, and SIGTERM at the end", func() {
		dir := GinkgoT().TempDir()
		at := func(name string) func() error {
			return func() error { _, err := os.Stat(filepath.Join(dir, name)); return err }
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan int, 1)
		go func() {
			defer GinkgoRecover()
			code, log := run(ctx, "trap 'touch "+dir+"/usr1' USR1; trap 'exit 5' TERM; touch "+dir+"/up; while :; do sleep 0.01; done", standalone.Foreground{Env: os.Environ()})
			Expect(log).To(gbytes.Say("envoy stops without draining"))
			ended <- code
		}()
		Eventually(at("up")).Should(Succeed())
		Expect(syscall.Kill(os.Getpid(), syscall.SIGUSR1)).To(Succeed())
		Eventually(at("usr1")).Should(Succeed())
		stop()
		Eventually(ended).Should(Receive(Equal(5)))
	})

	It("must exist", func() {
		_, err := standalone.RunForeground(context.Background(), standalone.EnvoyOptions{Path: "/not/there"}, standalone.Foreground{})
		Expect(err).To(MatchError(os.ErrNotExist))
	})
})
