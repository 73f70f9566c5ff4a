package rest

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How many wrong tokens an address may send.
const (
	failureBurst    = 10
	failureInterval = 6 * time.Second // one more each
	retryAfter      = "6"             // seconds
	// maxClients bounds the memory; what goes beyond it shares one limit.
	maxClients = 4096
)

// failures counts the wrong tokens of each client address.
type failures struct {
	mu      sync.Mutex
	clients map[netip.Prefix]*rate.Limiter
	others  *rate.Limiter
	swept   time.Time
}

func newFailures() *failures {
	return &failures{clients: map[netip.Prefix]*rate.Limiter{}, others: newLimiter()}
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(rate.Every(failureInterval), failureBurst) }

// allow counts a failure and reports whether it is within the limit.
func (f *failures) allow(client netip.Prefix, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	limiter, known := f.clients[client]
	if !known {
		f.sweep(now)
		limiter = f.others
		if len(f.clients) < maxClients {
			limiter = newLimiter()
			f.clients[client] = limiter
		}
	}
	return limiter.AllowN(now, 1)
}

// sweep forgets, at most once a second, who has not failed for so long that
// forgetting makes no difference.
func (f *failures) sweep(now time.Time) {
	if len(f.clients) < maxClients || now.Sub(f.swept) < time.Second {
		return
	}
	f.swept = now
	for client, limiter := range f.clients {
		if limiter.TokensAt(now) >= failureBurst {
			delete(f.clients, client)
		}
	}
}

// clientOf is the address of a client; for IPv6 its network, of which one
// client has all addresses. The zero value stands for any that is not HOST:PORT.
func clientOf(remote string) netip.Prefix {
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
