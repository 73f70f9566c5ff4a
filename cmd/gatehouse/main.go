// Command gatehouse is an API gateway: a control plane with a REST API, and
// the Envoy proxies that it configures.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Exit codes.
const (
	exitFailure  = 1 // the program could not do its work
	exitBadUsage = 2 // the command line or a setting is wrong
	exitBySignal = 128
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run returns the exit code. The first SIGINT or SIGTERM ends the work in good
// order, a second one ends the process at once.
func run(args []string) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		if s, ok := (<-signals).(syscall.Signal); ok {
			os.Exit(exitBySignal + int(s))
		}
	}()

	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var failed *runError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed) && ctx.Err() != nil && errors.Is(err, context.Canceled):
		return 0
	case errors.As(err, &failed):
		fmt.Fprintln(os.Stderr, oneLine(err))
		return exitFailure
	default:
		fmt.Fprintln(os.Stderr, oneLine(err))
		return exitBadUsage
	}
}

func oneLine(err error) string {
	return "gatehouse: " + strings.Join(strings.Fields(err.Error()), " ")
}

// runError is a failure of the work itself. Every other error is about the
// command line or the settings.
type runError struct{ err error }

func (e *runError) Error() string { return e.err.Error() }

func (e *runError) Unwrap() error { return e.err }
