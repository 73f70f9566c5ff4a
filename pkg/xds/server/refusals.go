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

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/perclient"
)

// These are the reasons of refusals, as they are in the metrics.
const (
	// ReasonNone: the client did not prove an identity.
	ReasonNone = "none"
	// ReasonConnections: the address has too many unauthenticated connections.
	ReasonConnections = "connections"
	// ReasonHandshake: the TLS handshake failed.
	ReasonHandshake = "handshake"
	// ReasonCertificate: the client certificate is not accepted.
	ReasonCertificate = "certificate"
	// ReasonExpired and ReasonRevoked: the client certificate is no longer accepted.
	ReasonExpired = "certificate_expired"
	ReasonRevoked = "certificate_revoked"
	// ReasonToken: the token does not exist, or no longer exists.
	ReasonToken = "token"
	// ReasonProxy: the identity is not allowed to use the node id.
	ReasonProxy = "proxy"
	// ReasonEngine: only rate-limit engines may fetch rate limits.
	ReasonEngine = "ratelimit"
	// ReasonEnded: the proof became invalid while the stream was open.
	ReasonEnded = "ended"
)

func reasons() []string {
	return []string{
		ReasonNone, ReasonConnections, ReasonHandshake, ReasonCertificate, ReasonExpired, ReasonRevoked, ReasonToken,
		ReasonProxy, ReasonEngine, ReasonEnded,
	}
}

// Refusal is why a client is not served. If a handler returns it, it becomes the status of the stream.
type Refusal struct {
	// Reason is one of the constants.
	Reason string
	// Denied means that the client is known but not allowed (PermissionDenied). Otherwise, it did not
	// prove its identity (Unauthenticated).
	Denied bool
	// Message is sent to the client. It names only the client's own proxies and token.
	Message string
	// Detail has more for the log only; it may be empty.
	Detail string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// GRPCStatus returns the status that the client receives.
func (r *Refusal) GRPCStatus() *status.Status {
	if r.Denied {
		return status.New(codes.PermissionDenied, r.Message)
	}
	return status.New(codes.Unauthenticated, r.Message)
}

// Refusals counts refusals, and logs each reason once per minute and client address. Use NewRefusals.
type Refusals struct {
	log    *slog.Logger
	limits map[string]*perclient.Limit // by reason

	mu     sync.Mutex
	counts map[string]int64
}

// NewRefusals returns a Refusals with all counts at 0.
func NewRefusals(log *slog.Logger) *Refusals {
	r := &Refusals{log: log, limits: map[string]*perclient.Limit{}, counts: map[string]int64{}}
	for _, reason := range reasons() {
		r.limits[reason] = perclient.New(1, time.Minute)
		r.counts[reason] = 0
	}
	return r
}

// Record counts a refusal of a client and logs it with attrs. Further refusals for the same reason and
// address within a minute are logged at debug level.
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

// Counts returns the number of refusals since the start for every reason.
func (r *Refusals) Counts() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}
