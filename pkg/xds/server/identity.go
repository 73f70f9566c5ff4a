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

// Identity is who a client has proved to be, and what it may therefore fetch. The zero value may fetch
// nothing.
type Identity struct {
	// Name describes the client and its proof, such as "certificate spiffe://gatehouse/proxy/edge". It
	// is for people, and empty for a client that proved nothing.
	Name string
	// Any means that the client may fetch everything: the port is open to all.
	Any bool
	// Proxies are the node ids that the client may use. They are compared exactly.
	Proxies []string
	// RateLimits means that the client is a rate-limit engine.
	RateLimits bool
	// Ended is closed when the proof is no longer valid; nil means that it stays valid.
	Ended <-chan struct{}
	// Why returns the reason after Ended is closed. It is required with Ended.
	Why func() string
}

// Authenticate identifies the client of a stream or call. ctx is the context of the stream, with the
// peer and the metadata. State for the identity may be freed when ctx ends. The error is a *Refusal.
// Any other error counts as a missing proof, and the client does not see its text.
type Authenticate func(ctx context.Context) (Identity, error)

type identityKey struct{}

// identityOf returns the identity of the client whose stream has the context.
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
		hint = "set node.id in the Envoy's bootstrap to a proxy that its certificate or token is for: " +
			shorten(strings.Join(id.Proxies, ", "), maxName)
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
		Message: id.Name + " may not fetch rate limits: only the identity of a rate-limit engine may; " +
			"an Envoy uses the delta protocol",
	}
}

// provenStream is a stream with a known client.
type provenStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // like gRPC's own streams
}

func (p provenStream) Context() context.Context { return p.ctx }

// authenticateStream runs before everything else on a stream, whichever method it names. It ends the
// stream when the client's proof becomes invalid.
func (s *Server) authenticateStream(
	srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	id, err := s.identify(stream.Context())
	if err != nil {
		return err
	}
	proven := provenStream{stream, context.WithValue(stream.Context(), identityKey{}, id)}
	if id.Ended == nil {
		return handler(srv, proven)
	}
	ended := func() error {
		return s.refuse(stream.Context(), &Refusal{Reason: ReasonEnded, Message: id.Name + ": " + id.Why()})
	}
	select {
	case <-id.Ended:
		return ended() // before anything is sent
	default:
	}
	// The handler has its own goroutine, since it may wait for the client. It ends when this function
	// returns, because that ends the stream.
	done := make(chan error, 1)
	go func() { done <- handler(srv, proven) }()
	select {
	case err := <-done:
		return err
	case <-id.Ended:
		return ended()
	}
}

// authenticateCall is authenticateStream for unary calls.
func (s *Server) authenticateCall(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	id, err := s.identify(ctx)
	if err != nil {
		return nil, err
	}
	return handler(context.WithValue(ctx, identityKey{}, id), req)
}

// answerUnknown answers calls of methods that are not served, including the unary Fetch methods.
func answerUnknown(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	return status.Errorf(codes.Unimplemented, "%s is not served: "+
		"an Envoy uses DeltaAggregatedResources and StreamLoadStats, a rate-limit engine StreamAggregatedResources",
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
		refusal = &Refusal{Reason: ReasonNone, Message: "the client is not authenticated", Detail: err.Error()}
	}
	return Identity{}, s.refuse(ctx, refusal)
}

// refuse records a refusal and returns it.
func (s *Server) refuse(ctx context.Context, refusal *Refusal, attrs ...any) error {
	s.refusals.Record(ctx, addressOf(ctx), refusal, attrs...)
	return refusal
}

// check records err if it is a refusal, and returns it.
func (s *Server) check(ctx context.Context, err error, attrs ...any) error {
	refusal := &Refusal{}
	if errors.As(err, &refusal) {
		return s.refuse(ctx, refusal, attrs...)
	}
	return err
}
