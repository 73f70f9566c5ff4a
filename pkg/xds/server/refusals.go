package server

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/perclient"
)

// The reasons of refusals, as they are in the metrics.
const (
	// ReasonNone: there is no proof of an identity.
	ReasonNone = "none"
	// ReasonConnections: there are too many connections of the address that have proved nothing.
	ReasonConnections = "connections"
	// ReasonHandshake: no TLS connection was made.
	ReasonHandshake = "handshake"
	// ReasonCertificate: the client certificate proves nothing here.
	ReasonCertificate = "certificate"
	// ReasonExpired and ReasonRevoked: it did once.
	ReasonExpired = "certificate_expired"
	ReasonRevoked = "certificate_revoked"
	// ReasonToken: no such token, or no more.
	ReasonToken = "token"
	// ReasonProxy: the node id is another's.
	ReasonProxy = "proxy"
	// ReasonEngine: rate limits are for rate-limit engines.
	ReasonEngine = "ratelimit"
	// ReasonEnded: a proof that held no longer does.
	ReasonEnded = "ended"
)

func reasons() []string {
	return []string{
		ReasonNone, ReasonConnections, ReasonHandshake, ReasonCertificate, ReasonExpired, ReasonRevoked, ReasonToken, ReasonProxy, ReasonEngine, ReasonEnded,
	}
}

// Refusal is why a client is not served. As the error of a handler it becomes the status of the stream.
type Refusal struct {
	// Reason is one of the constants.
	Reason string
	// Denied says that the client is known and asks for what is another's (PermissionDenied).
	// Otherwise it did not prove who it is (Unauthenticated).
	Denied bool
	// Message is what the client is told. It names no proxy and no token but its own.
	Message string
	// Detail is more of it, for the log only; it may be empty.
	Detail string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// GRPCStatus is what the client gets.
func (r *Refusal) GRPCStatus() *status.Status {
	if r.Denied {
		return status.New(codes.PermissionDenied, r.Message)
	}
	return status.New(codes.Unauthenticated, r.Message)
}

// Refusals counts refusals, and logs each reason once a minute for each client address. Use
// NewRefusals.
type Refusals struct {
	log    *slog.Logger
	limits map[string]*perclient.Limit // by reason

	mu     sync.Mutex
	counts map[string]int64
}

// NewRefusals returns one that has counted nothing.
func NewRefusals(log *slog.Logger) *Refusals {
	r := &Refusals{log: log, limits: map[string]*perclient.Limit{}, counts: map[string]int64{}}
	for _, reason := range reasons() {
		r.limits[reason] = perclient.New(1, time.Minute)
		r.counts[reason] = 0
	}
	return r
}

// Record counts a refusal of a client and logs it, with more attributes. Within a minute after such a line
// about the same address it is logged for debugging only.
func (r *Refusals) Record(ctx context.Context, address string, refusal *Refusal, attrs ...any) {
	limit := cmp.Or(r.limits[refusal.Reason], r.limits[ReasonNone])
	r.mu.Lock()
	r.counts[refusal.Reason]++
	r.mu.Unlock()
	attrs = append(slices.Clip(attrs), "address", address, "reason", refusal.Reason, "err", refusal.Message)
	if refusal.Detail != "" {
		attrs = append(attrs, "detail", shorten(refusal.Detail, maxName))
	}
	r.log.Log(ctx, logLevel(limit, address, slog.LevelWarn), "xds client refused", attrs...)
}

// Counts is how many there were since the start, by reason. Every reason is there.
func (r *Refusals) Counts() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}
