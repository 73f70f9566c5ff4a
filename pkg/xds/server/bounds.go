package server

import (
	"cmp"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/perclient"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// These bound what a client may cost. Clients may be unauthenticated, so whatever a
// client sends is bounded before it is kept or logged.
const (
	// maxRequestBytes fits an Envoy that reports 100,000 clusters when it
	// reconnects.
	maxRequestBytes = 32 << 20
	// readBufferBytes is kept for each connection. Acknowledgments fit, and larger
	// messages are read in pieces.
	readBufferBytes = 4 << 10
	// maxStreams bounds the streams of all clients, maxConnStreams those of a
	// connection. An Envoy has one or two.
	maxStreams     = 4096
	maxConnStreams = 16
	// firstWithin is how long a client may take to send its first request.
	firstWithin = 30 * time.Second
	// maxName and maxVersion bound the name and the version of a resource, in
	// bytes. Ours are shorter.
	maxName, maxVersion = 512, 128
	// maxForeign bounds the unknown names that are kept for all clients,
	// maxStreamForeign those for one client. freeForeign is what a stream may
	// always keep, even if others use up maxForeign.
	maxForeign, maxStreamForeign, freeForeign = 100_000, 10_000, 16
	// freeListeners are always kept: a listener that is forgotten would never be
	// removed from the Envoy.
	freeListeners = 64
	// maxUnanswered is how many messages may be unanswered. Envoy delays its
	// answers while a cluster warms.
	maxUnanswered = 10_000
	// maxRefusal is how much of a client's text is kept and logged.
	maxRefusal = 4 << 10
	// After a burst of askBurst requests, a client is served at askRate requests
	// per second.
	askBurst, askRate = 50, 10
	// An Envoy requests a certificate for the first client that needs it. There may
	// be as many handshakes per second as an Envoy can make.
	lookupBurst, lookupRate = 5000, 5000
)

// nodeID checks that a node id could be the name of a proxy (rest-api.md, "Names").
func nodeID(id string) error {
	const hint = "set node.id in the Envoy's bootstrap to the name of its proxy (see gatehouse bootstrap)"
	switch {
	case id == "":
		return status.Error(codes.InvalidArgument, "the node id is empty: "+hint)
	case len(id) > 253:
		return status.Errorf(codes.InvalidArgument, "the node id has %d bytes, and the name of a proxy at most 253: %s",
			len(id), hint)
	case !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(id):
		return status.Error(codes.InvalidArgument, "the node id has a character that proxy names cannot have; "+
			"allowed are A-Z a-z 0-9 . _ -: "+hint)
	}
	return nil
}

// shorten truncates a client's text to most bytes.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}

// limitStreams refuses a stream beyond maxStreams.
func (s *Server) limitStreams(
	srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	defer s.open.Add(-1)
	if s.open.Add(1) > maxStreams {
		return status.Errorf(codes.ResourceExhausted, "the control plane has %d streams open already; try again later",
			maxStreams)
	}
	return handler(srv, stream)
}

// firstOf returns the first request of a stream. If it times out, the goroutine
// that waits for the request ends with the stream.
func firstOf[T any](ctx context.Context, recv func() (T, error), within time.Duration) (T, error) {
	type result struct {
		req T
		err error
	}
	came := make(chan result, 1)
	go func() {
		req, err := recv()
		came <- result{req, err}
	}()
	timer := time.NewTimer(cmp.Or(within, firstWithin))
	defer timer.Stop()
	var nothing T
	select {
	case r := <-came:
		return r.req, r.err
	case <-timer.C:
		return nothing, status.Error(codes.DeadlineExceeded, "the stream sent no request: send a first request with the node")
	case <-ctx.Done():
		return nothing, ctx.Err()
	}
}

// checkNames refuses names and versions that are too long to be ours.
func checkNames(req *discoveryv3.DeltaDiscoveryRequest) error {
	tooLong := func(list []string) bool {
		for _, name := range list {
			if len(name) > maxName {
				return true
			}
		}
		return false
	}
	bad := tooLong(req.GetResourceNamesSubscribe()) || tooLong(req.GetResourceNamesUnsubscribe())
	for name, version := range req.GetInitialResourceVersions() {
		bad = bad || len(name) > maxName || len(version) > maxVersion
	}
	if bad {
		return status.Errorf(codes.InvalidArgument,
			"a resource has a name of more than %d bytes, or a version of more than %d", maxName, maxVersion)
	}
	return nil
}

// room returns how many more unknown names a stream may keep if it keeps own
// already.
func (s *Server) room(own int, typeURL string) int {
	room := min(maxStreamForeign-own, max(maxForeign-int(s.foreign.Load()), freeForeign-own))
	if typeURL == snapshot.ListenerType {
		room = max(room, freeListeners)
	}
	return room
}

// share is a stream's share of the unknown names that all streams keep.
type share struct {
	of  *atomic.Int64
	has int
}

func (s *share) set(n int) {
	s.of.Add(int64(n - s.has))
	s.has = n
}

// pace limits how often a client's requests are read.
type pace struct {
	asks, lookups *rate.Limiter
	timer         *time.Timer
}

func newPace() *pace {
	p := &pace{
		asks: rate.NewLimiter(askRate, askBurst), lookups: rate.NewLimiter(lookupRate, lookupBurst), timer: time.NewTimer(0),
	}
	<-p.timer.C
	return p
}

// ask counts a request and reports whether the client must wait for the timer.
func (p *pace) ask(lookup bool, now time.Time) (wait bool) {
	limiter := p.asks
	if lookup {
		limiter = p.lookups
	}
	d := limiter.ReserveN(now, 1).DelayFrom(now)
	if d > 0 {
		p.timer.Reset(d)
	}
	return d > 0
}

// quiet bounds the log lines about each client address: a hostile client could
// connect, disconnect and refuse all the time.
type quiet struct {
	comings, refusals *perclient.Limit
}

func newQuiet() quiet {
	return quiet{perclient.New(1000, 100*time.Millisecond), perclient.New(100, time.Second)}
}

// logLevel returns loud, or debug if an address is over its limit.
func logLevel(l *perclient.Limit, address string, loud slog.Level) slog.Level {
	if l.Allow(perclient.Prefix(address), time.Now()) {
		return loud
	}
	return slog.LevelDebug
}
