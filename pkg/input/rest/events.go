package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

const (
	// eventsAtOnce is how many events are written before a flush.
	eventsAtOnce = 100
	// sendTime is how long a reader may take no bytes.
	sendTime = 10 * time.Second
)

func (s *server) addEvents() {
	s.get("/events", s.streamEvents)
}

// streamEvents sends what happens as server-sent events, until the client goes
// away, its token is revoked, or the server stops. Each has an ID; a client that
// comes back with the last one in Last-Event-ID gets what it missed.
func (s *server) streamEvents(c *gin.Context) error {
	if err := noQuery(c); err != nil {
		return err
	}
	if s.events == nil {
		s.noRoute(c)
		return nil
	}
	c.Header("Content-Type", eventStream)
	c.Header("Cache-Control", "no-store")
	if c.Request.Method == http.MethodHead {
		c.Status(http.StatusOK)
		return nil
	}
	cursor := s.events.Now()
	var start bytes.Buffer
	start.WriteString("retry: 1000\n")
	if last := c.GetHeader("Last-Event-ID"); last != "" {
		cursor = status.ParseCursor(last)
	} else {
		// Without an event a client would not know where to go on.
		fmt.Fprintf(&start, "id: %s\n", cursor)
	}
	start.WriteString("\n")

	ctx, cancel := s.withStop(c.Request.Context())
	defer cancel()
	out := newEventWriter(c)
	err := out.send(start.Bytes())
	ping := time.NewTicker(s.ping)
	defer ping.Stop()
	for err == nil && ctx.Err() == nil {
		events, more := s.events.After(cursor, eventsAtOnce)
		if len(events) > 0 {
			cursor = s.events.Behind(events[len(events)-1])
			err = out.send(s.writeEvents(events))
			continue
		}
		select {
		case <-ctx.Done():
		case <-more:
		case <-ping.C:
			if !s.mayContinue(c) {
				return nil
			}
			// Whoever reads, and what is in between, knows that this still stands.
			err = out.send([]byte(": ping\n\n"))
		}
	}
	if err != nil {
		s.log.DebugContext(ctx, "event stream ended", "err", err)
	}
	return nil
}

const eventStream = "text/event-stream"

func (s *server) writeEvents(events []status.Event) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, e := range events {
		fmt.Fprintf(&b, "id: %s\nevent: %s\ndata: ", s.events.Behind(e), e.Event)
		if err := enc.Encode(e); err != nil { // it ends with a line feed
			panic("encoding event: " + err.Error()) // texts and numbers only
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// mayContinue reports whether the client may still read: a stream can outlive its
// token. If the database is away, it may.
func (s *server) mayContinue(c *gin.Context) bool {
	if s.guard == nil {
		return true
	}
	ctx := c.Request.Context()
	if sent := c.Request.Header.Values("Authorization"); len(sent) > 0 {
		_, err := s.guard.tokenHolder(ctx, sent)
		return !model.IsKind(err, model.NotFound)
	}
	if cookie, header := halvesOf(c.Request); cookie != "" && header != "" {
		_, _, err := s.guard.sessionHolder(ctx, c.Request)
		return !model.IsKind(err, model.NotFound)
	}
	some, err := s.guard.tokens.HasTokens(ctx)
	return err != nil || !some
}

// eventWriter writes to a client that may be slow, but not dead.
type eventWriter struct {
	c  *gin.Context
	rc *http.ResponseController
}

func newEventWriter(c *gin.Context) eventWriter {
	if w, ok := c.Writer.(*pacedWriter); ok {
		w.pace = sendTime
	}
	return eventWriter{c, http.NewResponseController(c.Writer)}
}

func (w eventWriter) send(b []byte) error {
	if _, err := w.c.Writer.Write(b); err != nil {
		return fmt.Errorf("writing events: %w", err)
	}
	if err := w.rc.Flush(); err != nil {
		return fmt.Errorf("writing events: %w", err)
	}
	return nil
}

// withStop returns a context that ends with ctx or when the server begins to stop.
func (s *server) withStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if s.onStop == nil {
		return ctx, cancel
	}
	forget := s.onStop(cancel)
	return ctx, func() {
		forget()
		cancel()
	}
}
