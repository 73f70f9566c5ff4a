package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Identity is who a client has proved to be, and what it may therefore fetch. The zero
// value may fetch nothing.
type Identity struct {
	// Name says who it is and how that was proved, such as
	// "certificate spiffe://gatehouse/proxy/edge". It is for people and empty for a
	// client that proved nothing.
	Name string
	// Any says that it may fetch everything: the port is open to all.
	Any bool
	// Proxies are the node ids that it may use, exactly as they are here.
	Proxies []string
	// RateLimits says that it is a rate-limit engine.
	RateLimits bool
	// Ended is closed when the proof no longer holds; nil means that it always does.
	Ended <-chan struct{}
	// Why says what ended it, once Ended is closed. It is required with Ended.
	Why func() string
}

// Authenticate finds out who opened a stream or made a call. ctx is that of the stream: it has the
// peer and the metadata, and what is kept for the identity may go when it ends. An error is a
// *Refusal; any other counts as one without a proof, and the client does not see its text.
type Authenticate func(ctx context.Context) (Identity, error)

type identityKey struct{}

// identityOf is who opened the stream of a context.
func identityOf(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}

// mayUse returns an error if the identity may not use a node id.
func (id Identity) mayUse(node string) error {
	if id.Any || slices.Contains(id.Proxies, node) {
		return nil
	}
	hint := "its certificate or token is for no proxy"
	if len(id.Proxies) > 0 {
		hint = "set node.id in the Envoy's bootstrap to a proxy that its certificate or token is for: " + shorten(strings.Join(id.Proxies, ", "), maxName)
	}
	return &Refusal{
		Reason: ReasonProxy, Denied: true,
		Message: fmt.Sprintf("%s may not use the node id %q: %s", id.Name, shorten(node, maxName), hint),
	}
}

// mayLimit returns an error if the identity may not fetch rate limits.
func (id Identity) mayLimit() error {
	if id.Any || id.RateLimits {
		return nil
	}
	return &Refusal{
		Reason: ReasonEngine, Denied: true,
		Message: id.Name + " may not fetch rate limits: only the identity of a rate-limit engine may; an Envoy uses the delta protocol",
	}
}

// provenStream is a stream whose client is known.
type provenStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // as gRPC has it
}

func (p provenStream) Context() context.Context { return p.ctx }

// authenticateStream comes before everything else on a stream, whichever method it names, and ends
// the stream when the proof of its client does.
func (s *Server) authenticateStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	id, err := s.identify(stream.Context())
	if err != nil {
		return err
	}
	proven := provenStream{stream, context.WithValue(stream.Context(), identityKey{}, id)}
	if id.Ended == nil {
		return handler(srv, proven)
	}
	// In a goroutine of its own, so that a handler that waits for its client ends too: it does
	// when this returns, because that ends the stream.
	done := make(chan error, 1)
	go func() { done <- handler(srv, proven) }()
	select {
	case err := <-done:
		return err
	case <-id.Ended:
		return s.refuse(stream.Context(), &Refusal{Reason: ReasonEnded, Message: id.Name + ": " + id.Why()})
	}
}

// authenticateCall is the same for unary calls.
func (s *Server) authenticateCall(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	id, err := s.identify(ctx)
	if err != nil {
		return nil, err
	}
	return handler(context.WithValue(ctx, identityKey{}, id), req)
}

// answerUnknown answers calls of methods that nobody serves, those of the unary Fetch calls among them.
func answerUnknown(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	return status.Errorf(codes.Unimplemented, "%s is not served: an Envoy uses DeltaAggregatedResources and StreamLoadStats, a rate-limit engine StreamAggregatedResources",
		shorten(method, maxVersion))
}

func (s *Server) identify(ctx context.Context) (Identity, error) {
	if s.opts.Authenticate == nil {
		return Identity{Any: true}, nil
	}
	id, err := s.opts.Authenticate(ctx)
	if err == nil {
		return id, nil
	}
	refusal := &Refusal{}
	if !errors.As(err, &refusal) {
		refusal = &Refusal{Reason: ReasonNone, Message: "the identity of the client is not proved", Detail: err.Error()}
	}
	return Identity{}, s.refuse(ctx, refusal)
}

// refuse records a refusal and returns it.
func (s *Server) refuse(ctx context.Context, refusal *Refusal, attrs ...any) error {
	s.refusals.Record(ctx, addressOf(ctx), refusal, attrs...)
	return refusal
}

// check records what a check of an identity says, and returns it.
func (s *Server) check(ctx context.Context, err error, attrs ...any) error {
	refusal := &Refusal{}
	if errors.As(err, &refusal) {
		return s.refuse(ctx, refusal, attrs...)
	}
	return err
}
