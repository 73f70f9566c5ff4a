package standalone

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Foreground is an Envoy that has this process's standard input and outputs.
type Foreground struct {
	// Args and Env are its complete arguments and environment.
	Args, Env []string
	// Files are its files from number 3 on.
	Files []*os.File
}

// signalled is added to the number of the signal that ended an Envoy.
const signalled = 128

// RunForeground runs an Envoy once, until it exits or ctx ends; then it lets running
// requests finish, for at most opts.Drain, and stops it. It returns Envoy's exit code.
// Of opts it uses Path, AdminSocket, Log, Drain and Children.
func RunForeground(ctx context.Context, opts EnvoyOptions, f Foreground) (code int, err error) {
	e := NewEnvoy(opts)
	p := &process{done: make(chan exit, 1), log: &logWriter{ctx: ctx, log: slog.New(slog.DiscardHandler)}}
	p.cmd = exec.Command(opts.Path, f.Args...)
	p.cmd.Env, p.cmd.ExtraFiles = f.Env, f.Files
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.WaitDelay = time.Second
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // see start
		defer runtime.UnlockOSThread()
		err := opts.Children.Start(p.cmd)
		started <- err
		if err != nil {
			return
		}
		err = opts.Children.Finish(p.cmd)
		p.done <- exit{reason: describe(p.cmd.ProcessState, err)}
	}()
	passed, stopPassing := reopenings()
	defer stopPassing()
	if err := <-started; err != nil {
		return 0, err
	}
	for {
		select {
		case <-p.done:
			return exitCode(p.cmd.ProcessState), nil
		case <-ctx.Done():
			e.stop(context.WithoutCancel(ctx), p)
			return exitCode(p.cmd.ProcessState), nil
		case s := <-passed:
			if err := p.cmd.Process.Signal(s); err != nil {
				opts.Log.Warn("sending a signal to envoy", "signal", s.String(), "err", err)
			}
		}
	}
}

// exitCode returns the exit code of a process as a shell shows it.
func exitCode(state *os.ProcessState) int {
	if state == nil {
		return 1 // it survived SIGKILL
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return signalled + int(ws.Signal())
	}
	return state.ExitCode()
}
