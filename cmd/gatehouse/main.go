// Command gatehouse is an API gateway: a control plane with a REST API, and
// the Envoy proxies that it configures.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/crd"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/importer"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// Exit codes.
const (
	exitFailure  = 1 // the program could not do its work
	exitBadUsage = 2 // the command line or a setting is wrong
	exitNotLive  = 3 // a change was made, and --wait ended before it was live
	exitBySignal = 128
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run returns the exit code. The first SIGINT, SIGTERM or SIGHUP ends the work in
// good order, a second SIGINT or SIGTERM ends the process at once. A second
// SIGHUP does not: a shell and the kernel send one each when a terminal closes.
func run(args []string) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		stop()
		for {
			if s, ok := (<-signals).(syscall.Signal); ok && s != syscall.SIGHUP {
				os.Exit(exitBySignal + int(s))
			}
		}
	}()

	root := newRoot()
	root.SetArgs(args)
	return exitCode(ctx, root.ExecuteContext(ctx), os.Stderr)
}

// exitCode says what became of err on stderr.
func exitCode(ctx context.Context, err error, stderr io.Writer) int {
	var failed *runError
	if ended, ok := errors.AsType[*exitStatus](err); ok {
		return ended.code
	}
	code := exitBadUsage
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errDifference):
		return exitFailure
	case errors.As(err, &failed) && ctx.Err() != nil && errors.Is(err, context.Canceled):
		return 0
	case errors.As(err, &failed):
		code = exitFailure
	}
	_, refused := errors.AsType[*client.Error](err)
	_, unfit := errors.AsType[*importer.Error](err)
	_, uncarried := errors.AsType[*crd.Error](err)
	_, lags := errors.AsType[*lagError](err)
	if lags {
		code = exitNotLive
	}
	if refused || unfit || uncarried || lags {
		// They have a line for everything that is bad.
		_, _ = fmt.Fprintln(stderr, "gatehouse: "+err.Error())
		return code
	}
	_, _ = fmt.Fprintln(stderr, oneLine(err))
	return code
}

func oneLine(err error) string {
	return "gatehouse: " + strings.Join(strings.Fields(err.Error()), " ")
}

// runError is a failure of the work itself. Every other error is about the
// command line or the settings.
type runError struct{ err error }

func (e *runError) Error() string { return e.err.Error() }

func (e *runError) Unwrap() error { return e.err }
