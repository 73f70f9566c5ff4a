package xdsauth

import (
	"container/list"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/perclient"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

const (
	// maxUnproven bounds the open connections of one client address on which nobody has authenticated. Each
	// costs a file descriptor and up to about 50 kB, for 10 s during its handshake and for a minute after that.
	maxUnproven = 512
	// maxUnprovenInAll bounds those of all addresses together.
	maxUnprovenInAll = 4 * maxUnproven
	// unprovenTime is how long such a connection is kept: an Envoy authenticates long before. After it, a new
	// connection replaces the oldest, so that a client that keeps connections open does not block the others
	// behind the same address. Before it, the new one is closed, so that many Envoys that reconnect at the same
	// time do not displace each other.
	unprovenTime = 2 * time.Second
)

// boundListener closes connections beyond maxUnproven and maxUnprovenInAll immediately. So neither one client nor many
// can take the memory and the file descriptors that others need.
type boundListener struct {
	net.Listener
	refusals *server.Refusals
	now      func() time.Time

	mu       sync.Mutex
	unproven map[netip.Prefix]*list.List // of *unprovenConn by client address, the oldest first; never empty
	all      *list.List                  // of *unprovenConn of all addresses, the oldest first
}

// Bound bounds the open connections that have not authenticated, of one client address and of all, for a port with
// Credentials and an Authenticator. A nil clock means time.Now.
func Bound(l net.Listener, refusals *server.Refusals, now func() time.Time) net.Listener {
	if now == nil {
		now = time.Now
	}
	return &boundListener{
		Listener: l, refusals: refusals, now: now, unproven: map[netip.Prefix]*list.List{}, all: list.New(),
	}
}

// Accept implements net.Listener.
func (l *boundListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		next := &unprovenConn{Conn: conn, of: l, client: perclient.Prefix(conn.RemoteAddr().String()), since: l.now()}
		tooMany := l.enter(next)
		if tooMany != nil {
			tooMany.drop()
		}
		if tooMany != next {
			return next, nil
		}
	}
}

// enter counts a connection. It returns the one that exceeds a bound: next, or an older one; nil if there is
// none.
func (l *boundListener) enter(next *unprovenConn) (tooMany *unprovenConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := l.unproven[next.client]
	switch {
	case open != nil && open.Len() >= maxUnproven:
		tooMany = open.Front().Value.(*unprovenConn)
		tooMany.why = fmt.Sprintf("the address has more than %d unauthenticated connections", maxUnproven)
	case l.all.Len() >= maxUnprovenInAll:
		tooMany = l.all.Front().Value.(*unprovenConn)
		tooMany.why = fmt.Sprintf("there are more than %d unauthenticated connections", maxUnprovenInAll)
	}
	if tooMany != nil {
		if next.since.Sub(tooMany.since) < unprovenTime {
			next.why = tooMany.why
			return next
		}
		l.remove(tooMany)
	}
	if l.unproven[next.client] == nil {
		l.unproven[next.client] = list.New()
	}
	next.at, next.atAll = l.unproven[next.client].PushBack(next), l.all.PushBack(next)
	return tooMany
}

// remove stops counting a connection; a second call does nothing. It requires mu.
func (l *boundListener) remove(c *unprovenConn) {
	if c.atAll == nil {
		return
	}
	l.all.Remove(c.atAll)
	c.atAll = nil
	open := l.unproven[c.client]
	if open.Remove(c.at); open.Len() == 0 {
		delete(l.unproven, c.client)
	}
}

// unprovenConn counts until it is closed or a client has authenticated on it.
type unprovenConn struct {
	net.Conn
	of     *boundListener
	client netip.Prefix
	since  time.Time
	// at is its place in the list of its client, and atAll that in the list of all; nil while it does not count.
	at, atAll *list.Element
	why       string // it exceeds a bound; written before drop
}

// Close implements net.Conn.
func (c *unprovenConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// leave stops counting it; a second call does nothing.
func (c *unprovenConn) leave() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.remove(c)
}

// drop closes a connection beyond the bound, so that the kernel keeps no state of it.
func (c *unprovenConn) drop() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
	c.of.refusals.Record(context.Background(), c.RemoteAddr().String(), &server.Refusal{
		Reason: server.ReasonConnections, Message: c.why,
	})
}

// plainInfo describes a connection without TLS.
type plainInfo struct{ raw net.Conn }

// AuthType implements credentials.AuthInfo.
func (plainInfo) AuthType() string { return "insecure" }

func (i plainInfo) connection() net.Conn { return i.raw }

func (i tlsInfo) connection() net.Conn { return i.conn.NetConn() }

// proven records that a client has authenticated on the connection of a stream.
func proven(ctx context.Context) {
	client, ok := peer.FromContext(ctx)
	if !ok {
		return
	}
	if info, ok := client.AuthInfo.(interface{ connection() net.Conn }); ok {
		if c, ok := info.connection().(*unprovenConn); ok {
			c.leave()
		}
	}
}
