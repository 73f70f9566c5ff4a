package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program that was started. It is safe for concurrent use.
type Process struct {
	Stdout, Stderr *Output

	cmd    *exec.Cmd
	exited chan struct{}
	// shown is closed when a terminal has shown all output; nil without one.
	shown <-chan struct{}
}

// Output is what a process has written so far.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Lines returns the complete lines.
func (o *Output) Lines() []string {
	lines := strings.Split(o.String(), "\n")
	return lines[:len(lines)-1]
}

// startProcess runs a program with additional environment variables. It removes
// Gatehouse's own variables from the test's environment.
func startProcess(path string, env []string, args ...string) (*Process, error) {
	return startProcessWith(path, append(ownEnviron(), env...), args...)
}

// ownEnviron returns the test's environment without Gatehouse's variables.
func ownEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GATEHOUSE_") })
}

// startProcessWith runs a program with only these environment variables.
func startProcessWith(path string, env []string, args ...string) (*Process, error) {
	p := newProcess(path, env, args...)
	return p, p.start()
}

func newProcess(path string, env []string, args ...string) *Process {
	p := &Process{Stdout: &Output{}, Stderr: &Output{}, exited: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = p.Stdout, p.Stderr
	p.cmd.SysProcAttr = sysProcAttr()
	// A child of the process may keep its output open a little longer.
	p.cmd.WaitDelay = 5 * time.Second
	return p
}

func (p *Process) start() error {
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.cmd.Path, err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the exit code is in the state
	}()
	return nil
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait returns the exit code once the process has ended; -1 means that a signal ended
// it.
func (p *Process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.exited:
		if p.shown != nil {
			<-p.shown
		}
		return p.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting for the end of %s: %w", p.cmd.Path, ctx.Err())
	}
}

// Signal sends a signal. It does nothing if the process has ended.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling %s: %w", p.cmd.Path, err)
	}
	return nil
}

// Stop sends SIGTERM and returns the exit code.
func (p *Process) Stop(ctx context.Context) (int, error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	return p.Wait(ctx)
}

// Kill kills the process without a chance to clean up (kill -9).
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// Freeze suspends the process, with its connections open, until Thaw or Kill.
func (p *Process) Freeze() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStopped(p.Pid())
}

// Thaw resumes a frozen process.
func (p *Process) Thaw() error { return p.Signal(syscall.SIGCONT) }

// startTimeout is the most that a server may take to start: a context without an end
// would wait forever for a server that hangs.
const startTimeout = 3 * time.Minute

// await calls ask until it succeeds, the process ends, ctx does or startTimeout has passed.
func (p *Process) await(ctx context.Context, what string, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return fmt.Errorf("waiting until %s: it ended with exit code %d: %s", what, p.cmd.ProcessState.ExitCode(), p.Stderr)
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w: %w: %s", what, ctx.Err(), err, p.Stderr)
		}
	}
}
