package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	gatestatus "github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

const (
	// RateLimitNode is the node id of every rate-limit engine. All engines
	// receive the same limits.
	RateLimitNode = "ratelimit"
	// RateLimitType is the type URL of the limits that an engine receives.
	RateLimitType = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
)

// limits are what every rate-limit engine should have. They are immutable.
type limits struct {
	// revision is the revision that last changed the content.
	revision int64
	// version is a hash of the content, so that it stays valid when an engine
	// connects to another control plane, or to this one after a restart.
	version   string
	resources []*anypb.Any
	names     []gatestatus.Resource
}

func buildLimits(revision int64, configs []*rlsconf.RateLimitConfig) (*limits, error) {
	l := &limits{revision: revision}
	hash := sha256.New()
	for _, c := range configs {
		body, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("encoding rate limits %s: %w", c.GetName(), err)
		}
		sum := sha256.Sum256(body)
		_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(body)))) // it never fails
		_, _ = hash.Write(body)
		l.resources = append(l.resources, &anypb.Any{TypeUrl: RateLimitType, Value: body})
		l.names = append(l.names, gatestatus.Resource{Name: c.GetName(), Version: hex.EncodeToString(sum[:8])})
	}
	l.version = hex.EncodeToString(hash.Sum(nil)[:16])
	return l, nil
}

// PublishRateLimits sets the limits of the rate-limit engines from a revision on.
// An empty list is published too: an engine opens its ports only after it has
// received limits. After an error, the engines keep their limits.
func (s *Server) PublishRateLimits(revision int64, configs []*rlsconf.RateLimitConfig) error {
	l, err := buildLimits(revision, configs)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limits != nil && s.limits.version == l.version {
		return nil
	}
	if s.limits == nil && len(configs) > 0 && len(s.engines) == 0 {
		// The limits existed before this process, and so did the engines.
		s.enginesComing = time.Now().Add(reconnectTime)
	}
	s.limits, s.limitsRefused = l, false
	for e := range s.engines {
		e.wake()
	}
	s.engineMoved()
	return nil
}

// WaitRateLimits returns when at least one rate-limit engine is connected and all
// connected engines have the limits of a revision. It returns immediately if the
// revision changed nothing for them. If ctx ends earlier, or if more time cannot
// help, it returns what is missing: refusals, or that no engine is connected. The
// revision must be published.
func (s *Server) WaitRateLimits(ctx context.Context, revision int64) []gatestatus.Lag {
	alarm := time.NewTimer(0) // until an engine that disconnected is no longer expected
	defer alarm.Stop()
	for {
		lags, moved, coming := s.engineLags(revision)
		hopeless := func(l gatestatus.Lag) bool {
			return l.Reason == gatestatus.Refused || l.Reason == gatestatus.NotConnected && coming <= 0
		}
		if !slices.ContainsFunc(lags, func(l gatestatus.Lag) bool { return !hopeless(l) }) {
			return lags
		}
		alarm.Stop()
		if coming > 0 {
			alarm.Reset(coming)
		}
		select {
		case <-moved:
		case <-alarm.C:
		case <-ctx.Done():
			return lags
		}
	}
}

// engineLags also returns a channel that is closed when the result may change,
// and how much longer to wait for an engine to reconnect.
func (s *Server) engineLags(revision int64) (lags []gatestatus.Lag, moved <-chan struct{}, coming time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limits == nil || s.limits.revision < revision {
		return nil, s.moved, 0
	}
	if len(s.engines) == 0 {
		return []gatestatus.Lag{{
			Proxy: RateLimitNode, Reason: gatestatus.NotConnected,
			Message: fmt.Sprintf("no rate-limit engine is connected (xDS node id %q)", RateLimitNode),
		}}, s.moved, time.Until(s.enginesComing)
	}
	for e := range s.engines {
		lag := gatestatus.Lag{
			Proxy: RateLimitNode, Envoy: e.address, Reason: gatestatus.Slow,
			Message: "the rate-limit engine has not answered yet",
		}
		switch s.limits.version {
		case e.has:
			continue
		case e.refused:
			lag.Reason, lag.Message = gatestatus.Refused, "the rate-limit engine refused the limits: "+e.refusal
		}
		lags = append(lags, lag)
	}
	slices.SortFunc(lags, func(a, b gatestatus.Lag) int { return cmp.Compare(a.Envoy, b.Envoy) })
	return lags, s.moved, 0
}

// engineMoved makes waiters check again. The caller holds mu.
func (s *Server) engineMoved() {
	close(s.moved)
	s.moved = make(chan struct{})
}
