package standalone

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bootstrapFile is in Envoy's directory.
const bootstrapFile = "bootstrap.yaml"

// exit is how an Envoy ended.
type exit struct {
	reason string
	// lastLines are the last warnings and errors that it logged.
	lastLines []string
}

// process is a running Envoy.
type process struct {
	cmd  *exec.Cmd
	done chan exit
	log  *logWriter
}

// runOnce runs Envoy until it exits, or until ctx ends and it was stopped.
func (e *Envoy) runOnce(ctx context.Context) (exit, error) {
	p, err := e.start(ctx)
	if err != nil {
		return exit{}, err
	}
	e.opts.Log.Debug("envoy started", "pid", p.cmd.Process.Pid)
	watch, stopWatch := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		e.watchReady(watch, p)
	}()
	defer func() {
		stopWatch()
		<-watched
	}()
	passed, stopPassing := reopenings()
	defer stopPassing()
	for {
		select {
		case x := <-p.done:
			return x, nil
		case <-ctx.Done():
			return e.stop(context.WithoutCancel(ctx), p), nil
		case <-passed:
			e.reopenLogs(ctx)
		}
	}
}

// reopenings receives SIGUSR1, with which Envoy opens its log files again. Without this, it could end this process.
func reopenings() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	return signals, func() { signal.Stop(signals) }
}

// reopenLogs has Envoy open its log files again. The signal would end an Envoy that has just been started.
func (e *Envoy) reopenLogs(ctx context.Context) {
	if err := e.admin.call(ctx, http.MethodPost, "/reopen_logs", nil); err != nil && ctx.Err() == nil {
		e.opts.Log.Warn("envoy does not open its log files again", "err", err)
	}
}

// start runs Envoy in its own process group, so that Ctrl-C in a terminal reaches only
// this program, which first drains Envoy.
func (e *Envoy) start(ctx context.Context) (*process, error) {
	log := &logWriter{ctx: context.WithoutCancel(ctx), log: e.opts.Log, told: e.opts.Told}
	p := &process{done: make(chan exit, 1), log: log}
	// An Envoy that crashed leaves its socket.
	if err := os.Remove(e.opts.AdminSocket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	p.cmd = exec.Command(e.opts.Path,
		"-c", e.opts.Dir.Join(bootstrapFile),
		// Without hot restart, gateways on one machine share nothing.
		"--disable-hot-restart",
		"--log-format", logFormat,
		"--log-level", logLevel(ctx, e.opts.Log),
		// Envoy logs a warning for each failed login, with the query of the request and
		// the identity provider's answer: they may contain codes and tokens. The
		// listener has a log of its own for that (see EnvoyOptions.Told).
		"--component-log-level", "oauth2:error",
		// By default Envoy buffers lines of the access log for 10 s.
		"--file-flush-interval-msec", "1000",
	)
	// Envoy does not need the program's own settings: one may be a token.
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GATEHOUSE_") })
	p.cmd.Stdout, p.cmd.Stderr = e.opts.Stdout, log
	p.cmd.SysProcAttr = childAttributes()
	// A grandchild that keeps the pipes open must not delay Wait.
	p.cmd.WaitDelay = time.Second

	started := make(chan error)
	go func() {
		// The kernel kills the child when the thread that made it ends (see
		// childAttributes), so this goroutine keeps its thread until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := e.opts.Children.Start(p.cmd)
		started <- err
		if err != nil {
			return
		}
		err = e.opts.Children.Finish(p.cmd)
		log.flush()
		p.done <- exit{describe(p.cmd.ProcessState, err), log.last}
	}()
	return p, <-started
}

// describe says how a process ended.
func describe(state *os.ProcessState, err error) string {
	if state == nil {
		return fmt.Sprint(err)
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return fmt.Sprintf("signal %d (%s)", int(ws.Signal()), ws.Signal())
	}
	return fmt.Sprintf("exit code %d", state.ExitCode())
}

// watchReady closes e.ready once Envoy reports that it is ready.
func (e *Envoy) watchReady(ctx context.Context, p *process) {
	began := time.Now()
	for {
		if err := e.admin.Get(ctx, "/ready", nil); err == nil {
			e.opts.Log.Info("envoy is ready", "pid", p.cmd.Process.Pid, "admin_socket", e.opts.AdminSocket,
				"took", time.Since(began).Round(time.Millisecond))
			e.once.Do(func() { close(e.ready) })
			return
		}
		if !wait(ctx, pollEvery) {
			return
		}
	}
}

// stop lets running requests finish, for at most opts.Drain, and stops Envoy.
func (e *Envoy) stop(ctx context.Context, p *process) exit {
	if x, ended := e.drain(ctx, p); ended {
		return x
	}
	p.log.ending.Store(true)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			e.opts.Log.Warn("sending a signal to envoy", "signal", s.String(), "err", err)
		}
		limit := time.NewTimer(termWait)
		select {
		case x := <-p.done:
			limit.Stop()
			return x
		case <-limit.C:
		}
		e.opts.Log.Warn("envoy ignores a signal", "signal", s.String())
	}
	return exit{reason: "not at all: it survived SIGKILL"}
}

// drain closes the listeners and waits until no request is running. Envoy then answers
// the running ones with "connection: close". New connections are refused immediately:
// with Envoy's graceful drain they would arrive until the end, and the requests that
// run then would be cut off. A keep-alive connection may have a request in flight: it
// gets time to learn of the close.
func (e *Envoy) drain(ctx context.Context, p *process) (x exit, ended bool) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.Drain)
	defer cancel()
	for _, path := range []string{"/healthcheck/fail", "/drain_listeners"} {
		if err := e.admin.call(ctx, http.MethodPost, path, nil); err != nil {
			e.opts.Log.Warn("envoy stops without draining", "err", err)
			return exit{}, false
		}
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	var last load
	since := time.Now() // when last was first seen
	for {
		now, err := e.admin.load(ctx)
		if ctx.Err() == nil && err != nil {
			e.opts.Log.Warn("envoy does not say how many requests are running", "err", err)
		}
		if err == nil {
			if now != last {
				last, since = now, time.Now()
			}
			if now.requests == 0 && (now.connections == 0 || time.Since(since) >= quietFor) {
				return exit{}, false
			}
		}
		select {
		case x := <-p.done:
			return x, true
		case <-ctx.Done():
			if last.requests > 0 {
				e.opts.Log.Warn("envoy stops with requests running", "requests", last.requests, "waited", e.opts.Drain)
			}
			return exit{}, false
		case <-poll.C:
		}
	}
}
