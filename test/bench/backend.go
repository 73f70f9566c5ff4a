package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
)

// backend answers every request with 200 and a short text, with little
// effort.
type backend struct {
	listener net.Listener
	answer   string
	keep     bool
	handlers sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil: closed
}

// newBackend starts a backend. Without keep it closes each connection, which spares a
// run with thousands of upstreams thousands of connections.
func newBackend(ctx context.Context, keep bool) (*backend, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a backend: %w", err)
	}
	b := &backend{listener: l, keep: keep, conns: map[net.Conn]struct{}{}}
	b.answerWith("ok\n")
	b.handlers.Go(b.accept)
	return b, nil
}

// answerWith sets the text, for requests of connections that come later.
func (b *backend) answerWith(text string) {
	closing := ""
	if !b.keep {
		closing = "Connection: close\r\n"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n%s\r\n%s", len(text), closing, text)
}

func (b *backend) port() int { return b.listener.Addr().(*net.TCPAddr).Port }

func (b *backend) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		open, answer := b.conns != nil, []byte(b.answer)
		if open {
			b.conns[conn] = struct{}{}
		}
		b.mu.Unlock()
		if !open {
			_ = conn.Close()
			return
		}
		b.handlers.Go(func() { b.serve(conn, answer) })
	}
}

// serve answers requests without a body.
func (b *backend) serve(conn net.Conn, answer []byte) {
	defer func() {
		b.mu.Lock()
		delete(b.conns, conn)
		b.mu.Unlock()
		_ = conn.Close()
	}()
	r := bufio.NewReader(conn)
	for {
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) <= len("\r\n") {
				break
			}
		}
		if _, err := conn.Write(answer); err != nil || !b.keep {
			return
		}
	}
}

func (b *backend) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	for conn := range b.conns {
		_ = conn.Close()
	}
	b.conns = nil
	b.mu.Unlock()
	b.handlers.Wait()
}
