package testkit

import (
	"io"
	"net"
	"sync"
)

// Balancer forwards each connection to the next address that accepts it, as a TCP load
// balancer does.
type Balancer struct {
	Addr string

	listener net.Listener
	group    sync.WaitGroup
}

// StartBalancer listens on a free port until Close.
func StartBalancer(addrs ...string) (*Balancer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &Balancer{Addr: l.Addr().String(), listener: l}
	b.group.Go(func() {
		for turn := 0; ; turn++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			b.group.Go(func() { b.lead(client, append(addrs[turn%len(addrs):len(addrs):len(addrs)], addrs...)) })
		}
	})
	return b, nil
}

// Close stops listening, and returns when both ends of each connection are closed.
func (b *Balancer) Close() error {
	err := b.listener.Close()
	b.group.Wait()
	return err
}

// lead connects a client to the first of some addresses that accepts the connection.
func (b *Balancer) lead(client net.Conn, addrs []string) {
	defer func() { _ = client.Close() }()
	for _, addr := range addrs {
		server, err := net.Dial("tcp", addr)
		if err != nil {
			continue
		}
		b.group.Go(func() {
			_, _ = io.Copy(server, client) // until one of them closes
			_ = server.Close()
		})
		_, _ = io.Copy(client, server)
		_ = server.Close()
		return
	}
}
