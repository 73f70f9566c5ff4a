package standalone_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
)

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of prctl(2): it makes this process the
// parent of orphans among its descendants, like process 1 of a container.
const prSetChildSubreaper = 36

// TestInit is not a test: it is the program that the next spec starts. For orphans it
// is what process 1 of a container is. Meanwhile it starts children of its own, and
// reports how many ended with another status than theirs.
func TestInit(*testing.T) {
	if os.Getenv("GATEHOUSE_TEST_INIT") == "" {
		return
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		panic(errno)
	}
	children := &standalone.Children{}
	ctx, stop := context.WithCancel(context.Background())
	var reaping sync.WaitGroup
	reaping.Go(func() { children.Reap(ctx, slog.New(slog.DiscardHandler)) })
	wrong := 0
	var orphans []string
	for range 20 {
		// It leaves an orphan, which ends later.
		cmd := exec.Command("sh", "-c", "sleep 0.05 & echo $!; exit 7")
		out, err := cmd.StdoutPipe()
		if err != nil {
			panic(err)
		}
		if err := children.Start(cmd); err != nil {
			panic(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			panic(err)
		}
		orphan := strings.TrimSpace(line)
		pid, err := strconv.Atoi(orphan)
		if err != nil {
			panic(err)
		}
		// Both have ended, and the orphan was reaped, before this program waits for its
		// own child.
		for state(cmd.Process.Pid) != "Z" && state(cmd.Process.Pid) != "gone" || state(pid) != "gone" {
			runtime.Gosched()
		}
		exit, ok := errors.AsType[*exec.ExitError](children.Finish(cmd))
		if !ok || exit.ExitCode() != 7 {
			wrong++
		}
		orphans = append(orphans, orphan)
	}
	fmt.Println("wrong", wrong, "orphans", strings.Join(orphans, ","))
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the spec has checked
	stop()
	reaping.Wait()
}

var _ = Describe("Process 1", func() {
	It("reaps orphans, and leaves the exit status of its own children alone", func() {
		out := gbytes.NewBuffer()
		parent := exec.Command(os.Args[0], "-test.run=^TestInit$", "-test.timeout=60s")
		parent.Env = append(os.Environ(), "GATEHOUSE_TEST_INIT=1")
		parent.Stdout, parent.Stderr = out, out
		stdin, err := parent.StdinPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(parent.Start()).To(Succeed())
		DeferCleanup(func() {
			_ = stdin.Close()
			Expect(parent.Wait()).To(Succeed(), string(out.Contents()))
		})
		Eventually(out, "30s").Should(gbytes.Say(`wrong 0 orphans [\d,]+\n`))

		_, list, _ := strings.Cut(strings.TrimSpace(string(out.Contents())), "orphans ")
		orphans := strings.Split(list, ",")
		Expect(orphans).To(HaveLen(20))
		for _, text := range orphans {
			pid, err := strconv.Atoi(text)
			Expect(err).NotTo(HaveOccurred())
			Eventually(func() string { return state(pid) }).Should(Equal("gone"), text)
		}
	})
})
