package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// EnvoyOptions says how to run an Envoy.
type EnvoyOptions struct {
	// Path is the program, as FindEnvoy returns it.
	Path string
	// Bootstrap is its configuration, with its admin endpoint at AdminSocket.
	Bootstrap   []byte
	AdminSocket string
	// Dir is a directory for this Envoy alone.
	Dir *RunDir
	// Ports are checked before the first start: Envoy would share a port with another
	// Envoy, or continue without it, and the user needs an error.
	Ports []Port
	// Stdout receives the access log. An *os.File is passed to Envoy itself.
	Stdout io.Writer
	Log    *slog.Logger
	// Told receives the lines that Envoy writes for this program rather than for people:
	// JSON objects with a field "gatehouse". Calls do not overlap. nil discards the
	// lines.
	Told func(line []byte)
	// Drain is how long requests may take to finish when Run ends; 0 means 5 s. Run
	// returns at most 3 s after that.
	Drain time.Duration
	// Children records the processes; nil means that orphans are not reaped.
	Children *Children
}

// Port is an address on which Envoy will listen, and the flag that sets it.
type Port struct{ Addr, Flag string }

// Limits of the supervisor.
const (
	defaultDrain = 5 * time.Second
	// termWait is how long Envoy may take to exit after SIGTERM.
	termWait = 2 * time.Second
	// quietFor is how long clients must have sent nothing on their keep-alive
	// connections before Envoy is stopped.
	quietFor = 500 * time.Millisecond
	// minBackoff doubles with each restart up to maxBackoff; after an Envoy has run for
	// healthyAfter, it starts at minBackoff again.
	minBackoff   = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
	healthyAfter = time.Minute
	// maxFailedStarts is how often Envoy may exit before it was ever ready.
	maxFailedStarts = 3
)

// Envoy supervises one Envoy process.
type Envoy struct {
	opts   EnvoyOptions
	admin  *Admin
	once   sync.Once
	ready  chan struct{}
	failed int // starts in a row, while it has never been ready
}

// NewEnvoy returns a supervisor. Run starts the process.
func NewEnvoy(opts EnvoyOptions) *Envoy {
	if opts.Drain == 0 {
		opts.Drain = defaultDrain
	}
	return &Envoy{opts: opts, ready: make(chan struct{}), admin: NewAdmin(opts.AdminSocket)}
}

// Ready is closed once Envoy has its configuration and listens.
func (e *Envoy) Ready() <-chan struct{} { return e.ready }

// Run starts Envoy, and restarts it whenever it exits, until ctx ends; then it lets
// running requests finish and stops Envoy. The error says why it cannot start.
func (e *Envoy) Run(ctx context.Context) error {
	if err := e.check(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if err := os.WriteFile(e.opts.Dir.Join(bootstrapFile), e.opts.Bootstrap, 0o600); err != nil {
		return fmt.Errorf("writing Envoy's bootstrap: %w", err)
	}

	backoff := minBackoff
	for {
		began := time.Now()
		exit, err := e.runOnce(ctx)
		if err != nil {
			return fmt.Errorf("starting Envoy %s: %w", e.opts.Path, err)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := e.countFailure(exit); err != nil {
			return err
		}
		if time.Since(began) >= healthyAfter {
			backoff = minBackoff
		}
		e.opts.Log.Error("envoy exited and is started again", "exit", exit.reason,
			"ran", time.Since(began).Round(time.Millisecond), "next_try_in", backoff)
		if !wait(ctx, backoff) {
			return nil
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// check finds errors that can be detected before the first start.
func (e *Envoy) check(ctx context.Context) error {
	if err := checkVersion(ctx, e.opts.Children, e.opts.Path, e.opts.Log); err != nil {
		return err
	}
	for _, p := range e.opts.Ports {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.Addr)
		if err != nil {
			return fmt.Errorf("envoy cannot listen on %s: %w: stop what uses it, or choose another address with --%s", p.Addr,
				cause(err), p.Flag)
		}
		if err := l.Close(); err != nil {
			return fmt.Errorf("checking whether %s is free: %w", p.Addr, err)
		}
	}
	return nil
}

// cause removes "listen tcp 127.0.0.1:80: bind: " from the error of a listen.
func cause(err error) error {
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		return sys.Err
	}
	return err
}

// countFailure returns an error if Envoy has failed to start too often.
func (e *Envoy) countFailure(x exit) error {
	select {
	case <-e.ready:
		return nil
	default:
	}
	e.failed++
	if e.failed < maxFailedStarts {
		return nil
	}
	return fmt.Errorf("envoy ended %d times before it was ready, last with %s; correct what its last lines report, "+
		"or choose another Envoy with --envoy: %s", e.failed, x.reason, strings.Join(x.lastLines, " | "))
}

// wait returns false if ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
