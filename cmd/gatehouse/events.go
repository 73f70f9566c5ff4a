package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

const (
	// eventTimeout is longer than the server is ever silent.
	eventTimeout = time.Minute
	firstRetry   = 500 * time.Millisecond
	lastRetry    = 10 * time.Second
)

func newEvents() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Follow events",
		Long: `Prints a line for each new event: revisions that are stored and published, Envoys
that connect and disconnect, what they acknowledge and refuse. The command
reconnects by itself and misses nothing, unless the server was restarted; then a
line says so. Ctrl-C stops it.`,
		Example: `  gatehouse events
  gatehouse events -o json | jq 'select(.event == "nack")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := connectWithin(cmd, eventTimeout)
			if err != nil {
				return err
			}
			defer r.Close()
			if err := r.follow(cmd.Context(), r.printEvent); err != nil && cmd.Context().Err() == nil {
				return &runError{err}
			}
			return nil
		},
	}
	withServer(cmd)
	if err := cmd.Flags().MarkHidden("timeout"); err != nil {
		panic("events: " + err.Error()) // withServer has made it
	}
	return withFormat(cmd, "", formatTable, formatJSON)
}

// follow calls tell with each event until ctx ends. The first connection has to succeed;
// later ones are tried until the server refuses.
func (r *remote) follow(ctx context.Context, tell func(client.Event) error) error {
	last, delay, connected := "", firstRetry, false
	for {
		stream, err := r.Events(ctx, last)
		if err == nil {
			if connected {
				(&printer{w: r.errOut}).line("gatehouse: connected again")
			}
			connected, delay = true, firstRetry
			err = tellEach(stream, tell)
			last = stream.LastID
			_ = stream.Close()
		}
		switch _, unwritten := errors.AsType[*runError](err); {
		case ctx.Err() != nil:
			return ctx.Err()
		case unwritten || !connected || client.IsRefusal(err):
			return err
		case errors.Is(err, io.EOF):
			err = errors.New("the server ended the stream")
		}
		(&printer{w: r.errOut}).line("gatehouse: %s; connecting again in %s", client.Printable(err.Error()), delay)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(delay):
		}
		delay = min(2*delay, lastRetry)
	}
}

// tellEach ends with the stream, whose error it returns, or with the error of tell, which is a
// runError when there is nowhere to write to.
func tellEach(stream *client.EventStream, tell func(client.Event) error) error {
	for {
		e, err := stream.Next()
		if err != nil {
			return err
		}
		if err := tell(e); err != nil {
			return err
		}
	}
}

func (r *remote) printEvent(e client.Event) error {
	p := printer{w: r.out}
	if r.format == formatJSON {
		p.line("%s", e.Data)
	} else {
		p.line("%s  %-10s  %s", client.Printable(e.At), client.Printable(e.Event), client.Printable(describe(e)))
	}
	return p.outputError()
}

// describe says in words what an event is about.
func describe(e client.Event) string {
	resources := strings.Join(e.Resources, ", ")
	if e.More > 0 {
		resources += fmt.Sprintf(" and %d more", e.More)
	}
	envoy := e.Proxy + " at " + e.Envoy
	switch e.Event {
	case "change":
		text := fmt.Sprintf("revision %d by %s: %s (%s)", e.Revision, e.Actor, e.Request, plural(e.Changes, "change", "changes"))
		if e.Message != "" {
			text += ": " + e.Message
		}
		return text
	case "publish":
		where := "no proxy"
		if len(e.Proxies) > 0 {
			where = strings.Join(e.Proxies, ", ")
		}
		return fmt.Sprintf("revision %d for %s, built in %g ms", e.Revision, where, e.TookMS)
	case "connect", "disconnect":
		return fmt.Sprintf("%s, Envoy %s", envoy, e.Version)
	case "ack":
		return fmt.Sprintf("%s: revision %d, %s %s", envoy, e.Revision, e.Type, resources)
	case "nack":
		return fmt.Sprintf("%s: revision %d, %s %s: %s", envoy, e.Revision, e.Type, resources, e.Message)
	case "applied":
		return fmt.Sprintf("%s: revision %d", envoy, e.Revision)
	case "overdue":
		return fmt.Sprintf("%s: routes no longer wait for cluster %s", envoy, resources)
	case "certificate", "login":
		return fmt.Sprintf("%s %s: %s", e.Object, e.Code, e.Message)
	case "provider":
		return fmt.Sprintf("%s: %s", strings.TrimSpace(e.Object+" "+e.Code), e.Message)
	case "reset":
		return e.Message
	}
	return string(e.Data) // of a newer server
}
