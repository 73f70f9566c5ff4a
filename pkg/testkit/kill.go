package testkit

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// Kill stops the backend as the death of its process would: its connections are reset,
// even in the middle of requests, and new ones are refused until Restart.
func (b *Backend) Kill() {
	b.listener.kill()
	b.server.Close()
}

// Restart restarts a backend, after Kill or Close, on the same port.
func (b *Backend) Restart() error { return b.start() }

// mortalListener keeps its connections, to reset them all.
type mortalListener struct {
	net.Listener
	mu    sync.Mutex
	conns map[*mortalConn]bool
	dead  bool
}

type mortalConn struct {
	net.Conn
	listener *mortalListener
}

func listenMortal(addr string) (*mortalListener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return &mortalListener{Listener: l, conns: map[*mortalConn]bool{}}, nil
}

// Accept implements net.Listener.
func (l *mortalListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &mortalConn{conn, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return nil, errors.Join(net.ErrClosed, c.reset())
	}
	l.conns[c] = true
	return c, nil
}

// Close implements net.Conn.
func (c *mortalConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// reset closes without an orderly shutdown.
func (c *mortalConn) reset() error {
	return errors.Join(c.Conn.(*net.TCPConn).SetLinger(0), c.Conn.Close())
}

func (l *mortalListener) kill() {
	_ = l.Close() // Restart reports whether the port is free
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for c := range l.conns {
		_ = c.reset() // it may be closed by now
	}
}
