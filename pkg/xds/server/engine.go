package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	gatestatus "github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

type sotwRPC = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer

// engine is one connected rate-limit engine. At most one response is unanswered, and
// a refused version is never sent again on the stream: an engine answers immediately,
// so this would be an endless loop.
type engine struct {
	server  *Server
	rpc     sotwRPC
	id      int64
	address string
	log     *slog.Logger
	changed chan struct{} // capacity 1

	// claimed is the version that the engine reported when it connected; empty after
	// it has been checked, and for an engine without one.
	claimed string
	// settled are the limits whose result the registry has received.
	settled *limits
	sent    *limits // not yet answered
	nonces  int
	nonce   string

	// has and refused are the versions that the engine acknowledged and refused last;
	// refusal is the reason. The stream writes them while it holds the server's mu.
	has, refused, refusal string
}

// StreamAggregatedResources serves one rate-limit engine until it disconnects. It
// refuses Envoys: this older protocol has no updates of single resources.
func (s *Server) StreamAggregatedResources(rpc sotwRPC) error {
	identity := identityOf(rpc.Context())
	if err := identity.mayLimit(); err != nil {
		return s.check(rpc.Context(), err, "identity", identity.Name)
	}
	first, err := firstOf(rpc.Context(), rpc.Recv, s.opts.FirstWithin)
	if err != nil {
		return err
	}
	if err := forEngine(first); err != nil || first.GetNode().GetId() != RateLimitNode {
		return status.Error(codes.Unimplemented, "use the delta protocol: "+
			"set api_type to DELTA_GRPC in the Envoy's bootstrap (see gatehouse bootstrap)")
	}
	e := &engine{
		server: s, rpc: rpc, id: s.ids.Add(1), address: addressOf(rpc.Context()), changed: make(chan struct{}, 1),
		claimed: shorten(first.GetVersionInfo(), maxVersion),
	}
	e.log = s.opts.Log.With("node", RateLimitNode, "stream", e.id)
	s.opts.Status.ConnectEngine(gatestatus.Envoy{
		ID: e.id, Address: e.address, Connected: time.Now(), Identity: identity.Name,
	})
	s.mu.Lock()
	s.engines[e] = struct{}{}
	s.engineMoved()
	s.mu.Unlock()
	loud := logLevel(s.quiet.comings, e.address, slog.LevelInfo)
	e.log.Log(rpc.Context(), loud, "rate-limit engine connected", "address", e.address, "version", e.claimed)
	defer func() {
		s.mu.Lock()
		delete(s.engines, e)
		s.enginesComing = time.Now().Add(reconnectTime)
		s.engineMoved()
		s.mu.Unlock()
		s.opts.Status.Disconnect(e.id)
		e.log.Log(context.WithoutCancel(rpc.Context()), loud, "rate-limit engine disconnected")
	}()
	return e.run()
}

func forEngine(req *discoveryv3.DiscoveryRequest) error {
	if req.GetTypeUrl() != RateLimitType {
		return status.Errorf(codes.Unimplemented, "%q is not sent with this protocol: only %s is",
			shorten(req.GetTypeUrl(), maxVersion), RateLimitType)
	}
	return nil
}

// wake tells the stream to check for new limits. It never blocks.
func (e *engine) wake() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// run is the stream's loop. It ends when the engine disconnects.
func (e *engine) run() error {
	ctx, cancel := context.WithCancel(e.rpc.Context())
	defer cancel()
	requests := make(chan *discoveryv3.DiscoveryRequest)
	gone := make(chan error, 1)
	// This ends with the RPC, whose context gRPC cancels when run returns.
	go func() { gone <- e.receive(ctx, requests) }()
	pace := newPace()
	defer pace.timer.Stop()
	hear := requests // nil while the engine must wait
	for {
		if err := e.advance(); err != nil {
			return err
		}
		select {
		case req := <-hear:
			if err := forEngine(req); err != nil {
				return err
			}
			if !e.handle(req) && pace.ask(false, time.Now()) {
				hear = nil
			}
		case <-pace.timer.C:
			hear = requests
		case <-e.changed:
		case err := <-gone:
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

func (e *engine) receive(ctx context.Context, to chan<- *discoveryv3.DiscoveryRequest) error {
	for {
		req, err := e.rpc.Recv()
		if err != nil {
			return err
		}
		select {
		case to <- req:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// handle processes the engine's answer to a response. It reports whether req is one.
func (e *engine) handle(req *discoveryv3.DiscoveryRequest) bool {
	if e.sent == nil || req.GetResponseNonce() != e.nonce {
		return false
	}
	l, detail := e.sent, req.GetErrorDetail()
	e.sent = nil
	if detail == nil {
		e.recordAck(l)
		return true
	}
	text := shorten(detail.GetMessage(), maxRefusal)
	e.recordNack(l, text)
	e.log.Log(e.rpc.Context(), logLevel(e.server.quiet.refusals, e.address, slog.LevelWarn),
		"rate-limit engine refused the limits and keeps what it had", "rev", l.revision, "err", text)
	return true
}

// recordAck records that the engine has l.
func (e *engine) recordAck(l *limits) {
	e.settled = l
	s := e.server
	s.opts.Status.RecordAck(e.id, RateLimitType, limitsAnswer(l, ""))
	e.log.Info("rate-limit engine has the limits", "rev", l.revision, "resources", len(l.resources))
	s.mu.Lock()
	defer s.mu.Unlock()
	e.has = l.version
	s.engineMoved()
}

// recordNack records that the engine refused l.
func (e *engine) recordNack(l *limits, why string) {
	e.settled = l
	s := e.server
	s.opts.Status.RecordNack(e.id, RateLimitType, limitsAnswer(l, why))
	s.mu.Lock()
	defer s.mu.Unlock()
	e.refused, e.refusal = l.version, why
	s.limitsRefused = s.limitsRefused || s.limits.version == l.version
	s.engineMoved()
}

// advance sends the limits that the engine does not have.
func (e *engine) advance() error {
	s := e.server
	s.mu.Lock()
	l, doubtful, held := s.limits, s.limitsRefused, s.held != ""
	s.mu.Unlock()
	if l == nil || held || e.sent != nil || e.settled == l {
		return nil
	}
	claimed := e.claimed
	e.claimed = ""
	if claimed == l.version && !doubtful {
		// An engine that reconnects reports the version that it received last, even
		// if it refused that one.
		e.recordAck(l)
		return nil
	}
	switch l.version { // after several changes, the content may be what it was before
	case e.has:
		e.recordAck(l)
		return nil
	case e.refused:
		e.recordNack(l, e.refusal)
		return nil
	}
	e.nonces++
	e.nonce = strconv.Itoa(e.nonces) + "-" + l.version
	if err := e.rpc.Send(&discoveryv3.DiscoveryResponse{
		VersionInfo: l.version, Resources: l.resources, TypeUrl: RateLimitType, Nonce: e.nonce,
	}); err != nil {
		return fmt.Errorf("sending rate limits: %w", err)
	}
	e.sent = l
	s.opts.Status.RecordSent(e.id, RateLimitType, limitsAnswer(l, ""))
	return nil
}

func limitsAnswer(l *limits, text string) gatestatus.Answer {
	return gatestatus.Answer{Revision: l.revision, Resources: l.names, At: time.Now(), Text: text}
}
