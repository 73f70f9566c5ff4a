package standalone

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// Children are the processes that this program has started and waits for. As process 1
// of a container the program also inherits orphans: the children of a process that has
// ended. Reap waits for these and not for the program's own children, whose exit status
// is needed. The zero value is ready to use; a nil *Children records nothing.
type Children struct {
	mu  sync.Mutex
	own map[int]bool
}

// Start starts cmd, as cmd.Start does. Finish must follow if it succeeds.
func (c *Children) Start(cmd *exec.Cmd) error {
	if c == nil {
		return cmd.Start()
	}
	// No process is reaped while one exists without an entry.
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	if c.own == nil {
		c.own = map[int]bool{}
	}
	c.own[cmd.Process.Pid] = true
	return nil
}

// Finish waits until cmd ends, as cmd.Wait does.
func (c *Children) Finish(cmd *exec.Cmd) error {
	err := cmd.Wait()
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.own, cmd.Process.Pid)
	}
	return err
}

// Reap reaps orphaned zombies until ctx ends.
func (c *Children) Reap(ctx context.Context, log *slog.Logger) {
	// The signal says that some child has ended; one signal may stand for many.
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		for _, pid := range c.reapOnce() {
			log.Debug("an orphan has ended", "pid", pid)
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
		}
	}
}

// StartReaping runs Reap in the background until stop is called.
func (c *Children) StartReaping(log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Reap(ctx, log)
	}()
	return func() {
		cancel()
		<-done
	}
}

// reapOnce reaps the orphans that are zombies, and returns them.
func (c *Children) reapOnce() (reaped []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pid := range zombies(os.DirFS("/proc"), os.Getpid()) {
		if c.own[pid] {
			continue
		}
		if got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); err == nil && got == pid {
			reaped = append(reaped, pid)
		}
	}
	return reaped
}
