package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
)

// wire is one keep-alive HTTP/1.1 connection that sends requests with little effort, so
// that the client is not what is measured. It connects when necessary.
type wire struct {
	addr  string
	conn  net.Conn
	r     *bufio.Reader
	asked int // on this connection
}

// askedPerDeadline is the number of requests after which the deadline is set again.
const askedPerDeadline = 64

// patience bounds every wait for something that should happen.
const patience = 2 * time.Minute

// get returns a request for a path of a host.
func get(host, path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: gatehouse-bench\r\n\r\n", path, host)
}

// ask sends a request and returns the status of the answer. After an error the next
// call reconnects.
func (w *wire) ask(ctx context.Context, request []byte) (status int, err error) {
	if w.conn == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.addr)
		if err != nil {
			return 0, err
		}
		w.conn, w.r = conn, bufio.NewReader(conn)
		w.asked = 0
	}
	if w.asked%askedPerDeadline == 0 {
		if err = w.conn.SetDeadline(time.Now().Add(patience)); err != nil {
			w.close()
			return 0, err
		}
	}
	w.asked++
	if _, err = w.conn.Write(request); err == nil {
		status, err = readAnswer(w.r)
	}
	if err != nil {
		w.close()
	}
	return status, err
}

func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// until sends requests until the answer has the status, and returns when it arrived. It
// waits for an Envoy that does not listen yet. The pause between two requests may be 0.
func (w *wire) until(ctx context.Context, request []byte, want int, pause time.Duration) (time.Time, error) {
	const dialPause = time.Millisecond
	deadline := time.Now().Add(patience)
	for {
		status, err := w.ask(ctx, request)
		now := time.Now()
		if err == nil && status == want {
			return now, nil
		}
		if now.After(deadline) {
			return now, fmt.Errorf("waiting for %d to %q: still %d (%w) after %s", want, firstLine(request), status, err, patience)
		}
		wait := pause
		if err != nil {
			wait = max(pause, dialPause)
		}
		if err := sleep(ctx, wait); err != nil {
			return now, err
		}
	}
}

// sleep returns early, with its error, when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond {
		nap(max(d, 0))
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// eventually calls ask until there is no error.
func eventually(ctx context.Context, what string, ask func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := ask()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// readAnswer reads an answer with a Content-Length, as Envoy's have here.
func readAnswer(r *bufio.Reader) (status int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, fmt.Errorf("not an answer: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, fmt.Errorf("not an answer: %q", line)
	}
	length, chunked := 0, false
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return 0, err
		}
		if len(line) <= len("\r\n") {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			chunked = true
		}
	}
	if chunked {
		return status, discardChunks(r)
	}
	_, err = r.Discard(length)
	return status, err
}

// discardChunks reads a body without a length (RFC 9112 section 7.1).
func discardChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		length, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil {
			return fmt.Errorf("not a chunk: %q", line)
		}
		if _, err := r.Discard(int(length) + len("\r\n")); err != nil || length == 0 {
			return err
		}
	}
}

func firstLine(request []byte) string {
	line, _, _ := bytes.Cut(request, []byte("\r\n"))
	return string(line)
}
