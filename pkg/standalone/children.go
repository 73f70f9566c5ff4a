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
// of a container the program also gets orphans: the children of a process that has
// ended. Reap waits for these and leaves the program's own alone, whose exit status
// somebody wants. The zero value is ready to use; a nil *Children has no account.
type Children struct {
	mu  sync.Mutex
	own map[int]bool
}

// Start starts cmd, as cmd.Start does. Finish must follow if it succeeds.
func (c *Children) Start(cmd *exec.Cmd) error {
	if c == nil {
		return cmd.Start()
	}
	// Nobody reaps while a process is there that has no entry yet.
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

// Reap ends the zombies that orphans leave, until ctx ends.
func (c *Children) Reap(ctx context.Context, log *slog.Logger) {
	// The signal tells that some child has ended; many may be one.
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

// reapOnce returns the orphans that were zombies and are gone.
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
