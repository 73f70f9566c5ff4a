package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxEvent bounds a line of a stream of events, in bytes.
const maxEvent = 1 << 20

// Event is one event of the server. Fields that it does not have are empty.
type Event struct {
	Event     string   `json:"event"`
	At        string   `json:"at"`
	Revision  int64    `json:"revision"`
	Actor     string   `json:"actor"`
	Request   string   `json:"request"`
	Changes   int      `json:"changes"`
	Proxies   []string `json:"proxies"`
	TookMS    float64  `json:"took_ms"`
	Proxy     string   `json:"proxy"`
	Envoy     string   `json:"envoy"`
	Version   string   `json:"version"`
	Type      string   `json:"type"`
	Resources []string `json:"resources"`
	More      int      `json:"more"`
	Object    string   `json:"object"`
	Code      string   `json:"code"`
	Message   string   `json:"message"`

	// Data is all of it, as it was sent.
	Data json.RawMessage `json:"-"`
}

// EventStream reads the events of a server.
type EventStream struct {
	body  io.ReadCloser
	lines *bufio.Scanner
	// LastID is the place to go on from, with another stream.
	LastID string
}

// Events opens a stream of events, behind the one with an ID; from now on when
// lastID is empty. The caller closes it.
func (c *Client) Events(ctx context.Context, lastID string) (*EventStream, error) {
	r := Request{Method: http.MethodGet, Path: "/events", Accept: "text/event-stream"}
	if lastID != "" {
		r.Header = http.Header{"Last-Event-Id": {lastID}}
	}
	body, err := c.Stream(ctx, r)
	if err != nil {
		return nil, err
	}
	s := &EventStream{body: body, lines: bufio.NewScanner(body), LastID: lastID}
	s.lines.Buffer(nil, maxEvent)
	return s, nil
}

// Next returns the next event; io.EOF when the server ended the stream.
func (s *EventStream) Next() (Event, error) {
	var data []byte
	for s.lines.Scan() {
		field, value, _ := strings.Cut(s.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case s.lines.Text() != "":
			switch field {
			case "id":
				s.LastID = value
			case "data":
				data = append(data, value...)
			}
		case len(data) > 0:
			e := Event{Data: data}
			if err := json.Unmarshal(data, &e); err != nil {
				return Event{}, fmt.Errorf("reading an event: %w", err)
			}
			return e, nil
		}
	}
	if err := s.lines.Err(); err != nil {
		return Event{}, err
	}
	return Event{}, io.EOF
}

// Close ends the stream.
func (s *EventStream) Close() error { return s.body.Close() }

// IsRefusal reports whether err is the answer of a server that would say the
// same again, as opposed to one that is away.
func IsRefusal(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status/100 == 4 && e.Status != http.StatusTooManyRequests
}
