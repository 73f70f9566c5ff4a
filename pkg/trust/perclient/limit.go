package perclient

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxClients bounds the memory; further clients share one limit.
const maxClients = 4096

// Limit is safe for concurrent use. Use New.
type Limit struct {
	every time.Duration
	burst int

	mu      sync.Mutex
	clients map[netip.Prefix]*rate.Limiter
	others  *rate.Limiter
	swept   time.Time
}

// New returns a limit that allows burst events at the same time, and one more in each
// interval.
func New(burst int, every time.Duration) *Limit {
	l := &Limit{every: every, burst: burst, clients: map[netip.Prefix]*rate.Limiter{}}
	l.others = l.limiter()
	return l
}

func (l *Limit) limiter() *rate.Limiter { return rate.NewLimiter(rate.Every(l.every), l.burst) }

// Allow counts an event of a client and reports whether it is within the limit.
func (l *Limit) Allow(client netip.Prefix, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter, known := l.clients[client]
	if !known {
		l.sweep(now)
		limiter = l.others
		if len(l.clients) < maxClients {
			limiter = l.limiter()
			l.clients[client] = limiter
		}
	}
	return limiter.AllowN(now, 1)
}

// Clients returns how many clients are remembered.
func (l *Limit) Clients() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.clients)
}

// sweep forgets, at most once a second, the clients that have been quiet for so long
// that forgetting them makes no difference.
func (l *Limit) sweep(now time.Time) {
	if len(l.clients) < maxClients || now.Sub(l.swept) < time.Second {
		return
	}
	l.swept = now
	for client, limiter := range l.clients {
		if limiter.TokensAt(now) >= float64(l.burst) {
			delete(l.clients, client)
		}
	}
}

// Prefix returns the address of a client; for IPv6 its network, because one client has
// all of its addresses. The zero value stands for any remote that is not HOST:PORT.
func Prefix(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr := at.Addr().Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
