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

	"github.com/gatehouse-gateway/gatehouse/pkg/perclient"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

const (
	// maxUnproven is how many connections of one client address may be open on which nobody has
	// proved who he is. Each costs a file descriptor and up to some 50 kB, for 10 s while it is in its handshake
	// and for a minute after that.
	maxUnproven = 512
	// unprovenTime is how long such a connection is left in peace: an Envoy has proved who it is long
	// before. After it, the oldest makes room for a new one, so that who holds connections open does not keep
	// out the others behind the same address. Before it, the new one is closed, so that many Envoys that
	// come back at once do not push each other out.
	unprovenTime = 2 * time.Second
)

// boundListener closes connections beyond maxUnproven at once. So one client cannot take
// the memory and the file descriptors that others need.
type boundListener struct {
	net.Listener
	refusals *server.Refusals
	now      func() time.Time

	mu       sync.Mutex
	unproven map[netip.Prefix]*list.List // of *unprovenConn by client address, the oldest first; never empty
}

// Bound bounds how many connections of one client address may be open that have proved
// nothing, for a port with Credentials and an Authenticator. A nil clock means time.Now.
func Bound(l net.Listener, refusals *server.Refusals, now func() time.Time) net.Listener {
	if now == nil {
		now = time.Now
	}
	return &boundListener{Listener: l, refusals: refusals, now: now, unproven: map[netip.Prefix]*list.List{}}
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

// enter counts a connection, and returns the one that is too many: it, or an older one; nil if none is.
func (l *boundListener) enter(next *unprovenConn) (tooMany *unprovenConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := l.unproven[next.client]
	if open == nil {
		open = list.New()
		l.unproven[next.client] = open
	}
	if open.Len() >= maxUnproven {
		tooMany = open.Front().Value.(*unprovenConn)
		if next.since.Sub(tooMany.since) < unprovenTime {
			return next
		}
		open.Remove(tooMany.at)
	}
	next.at = open.PushBack(next)
	return tooMany
}

// unprovenConn counts until it is closed or somebody has proved who he is on it.
type unprovenConn struct {
	net.Conn
	of     *boundListener
	client netip.Prefix
	since  time.Time
	at     *list.Element // in the list of its client, or no longer
}

// Close implements net.Conn.
func (c *unprovenConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// leave makes it count no longer; again it does nothing.
func (c *unprovenConn) leave() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	open := c.of.unproven[c.client]
	if open == nil {
		return
	}
	open.Remove(c.at)
	if open.Len() == 0 {
		delete(c.of.unproven, c.client)
	}
}

// drop closes a connection that is too many, and leaves nothing of it.
func (c *unprovenConn) drop() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
	c.of.refusals.Record(context.Background(), c.RemoteAddr().String(), &server.Refusal{
		Reason: server.ReasonConnections, Message: fmt.Sprintf("the address has more than %d connections on which nobody has proved who he is", maxUnproven),
	})
}

// plainInfo is of a connection without TLS.
type plainInfo struct{ raw net.Conn }

// AuthType implements credentials.AuthInfo.
func (plainInfo) AuthType() string { return "insecure" }

func (i plainInfo) connection() net.Conn { return i.raw }

func (i tlsInfo) connection() net.Conn { return i.conn.NetConn() }

// proven notes that somebody has proved on the connection of a stream who he is.
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
