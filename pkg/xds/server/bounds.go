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

	"github.com/gatehouse-gateway/gatehouse/pkg/perclient"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// What a client may cost. Nobody is authenticated here, so whatever a client
// says has a bound before it is kept or logged.
const (
	// maxRequestBytes fits an Envoy that reports 100,000 clusters when it comes
	// back.
	maxRequestBytes = 32 << 20
	// readBufferBytes is kept for each connection: acknowledgments fit, and what
	// is larger is read in pieces.
	readBufferBytes = 4 << 10
	// maxStreams is of all clients together, maxConnStreams of a connection: an
	// Envoy has one or two.
	maxStreams     = 4096
	maxConnStreams = 16
	// firstWithin is how long a client may take to say who it is.
	firstWithin = 30 * time.Second
	// maxName and maxVersion are of a resource. Ours have less.
	maxName, maxVersion = 512, 128
	// maxForeign are the names that are kept for all clients though nobody
	// serves them, maxStreamForeign those for one of them. What freeForeign
	// needs is there when others have taken all.
	maxForeign, maxStreamForeign, freeForeign = 100_000, 10_000, 16
	// freeListeners are kept whatever else is: one that is forgotten would
	// serve on.
	freeListeners = 64
	// maxUnanswered is how many messages may wait for an answer. Envoy holds
	// answers back while a cluster warms.
	maxUnanswered = 10_000
	// maxRefusal is how much of a client's text is kept and logged.
	maxRefusal = 4 << 10
	// A client that asks for more than askBurst things at once, and askRate
	// each second, is heard later.
	askBurst, askRate = 50, 10
	// An Envoy asks for a certificate when the first of its clients does. There may
	// be as many handshakes a second as an Envoy can make.
	lookupBurst, lookupRate = 5000, 5000
)

// nodeID is what a proxy's name may be (rest-api.md, "Names").
func nodeID(id string) error {
	const hint = "set node.id in the Envoy's bootstrap to the name of its proxy (see gatehouse bootstrap)"
	switch {
	case id == "":
		return status.Error(codes.InvalidArgument, "the node id is empty: "+hint)
	case len(id) > 253:
		return status.Errorf(codes.InvalidArgument, "the node id has %d bytes, and the name of a proxy at most 253: %s", len(id), hint)
	case !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(id):
		return status.Error(codes.InvalidArgument, "the node id has a character that the name of no proxy has; allowed are A-Z a-z 0-9 . _ -: "+hint)
	}
	return nil
}

// shorten cuts a client's text.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}

// limitStreams refuses what is too much for all clients together.
func (s *Server) limitStreams(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	defer s.open.Add(-1)
	if s.open.Add(1) > maxStreams {
		return status.Errorf(codes.ResourceExhausted, "the control plane has %d streams open already; try again later", maxStreams)
	}
	return handler(srv, stream)
}

// firstOf returns the first request of a stream. When it does not come in time,
// what waits for it ends with the stream.
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
		return nothing, status.Error(codes.DeadlineExceeded, "the stream was opened and nothing was asked: send a first request with the node")
	case <-ctx.Done():
		return nothing, ctx.Err()
	}
}

// checkNames refuses what names nothing of ours.
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
		return status.Errorf(codes.InvalidArgument, "a resource has a name of more than %d bytes, or a version of more than %d", maxName, maxVersion)
	}
	return nil
}

// room is how many names that nobody serves a stream may keep beside its own.
func (s *Server) room(own int, typeURL string) int {
	room := min(maxStreamForeign-own, max(maxForeign-int(s.foreign.Load()), freeForeign-own))
	if typeURL == snapshot.ListenerType {
		room = max(room, freeListeners)
	}
	return room
}

// share is what a stream has of the names that all may keep.
type share struct {
	of  *atomic.Int64
	has int
}

func (s *share) set(n int) {
	s.of.Add(int64(n - s.has))
	s.has = n
}

// pace says when a client is heard again that has asked for something.
type pace struct {
	asks, lookups *rate.Limiter
	timer         *time.Timer
}

func newPace() *pace {
	p := &pace{asks: rate.NewLimiter(askRate, askBurst), lookups: rate.NewLimiter(lookupRate, lookupBurst), timer: time.NewTimer(0)}
	<-p.timer.C
	return p
}

// ask counts a question and reports whether the client has to wait for the
// timer.
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

// quiet bounds the lines of the log about each client address: one that has
// nothing to lose may come, go and refuse all the time.
type quiet struct {
	comings, refusals *perclient.Limit
}

func newQuiet() quiet {
	return quiet{perclient.New(1000, 100*time.Millisecond), perclient.New(100, time.Second)}
}

// logLevel returns loud, or debug beyond the limit of an address.
func logLevel(l *perclient.Limit, address string, loud slog.Level) slog.Level {
	if l.Allow(perclient.Prefix(address), time.Now()) {
		return loud
	}
	return slog.LevelDebug
}
