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

	gatestatus "github.com/gatehouse-gateway/gatehouse/pkg/status"
)

const (
	// RateLimitNode is the node id of every rate-limit engine: all get the same.
	RateLimitNode = "ratelimit"
	// RateLimitType is the type URL of what an engine is told.
	RateLimitType = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
)

// limits is what every rate-limit engine should have. It is never changed.
type limits struct {
	// revision is the one that made the content what it is.
	revision int64
	// version is a hash of the content, so that it says the same to an engine
	// that comes back to another control plane, or to this one after a restart.
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

// PublishRateLimits takes what the rate-limit engines should have from a
// revision on. None are limits too: an engine opens its ports only when it was
// told something. After an error the engines keep what they had.
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
		// They were there before this process, and the engines too.
		s.enginesComing = time.Now().Add(reconnectTime)
	}
	s.limits, s.limitsRefused = l, false
	for e := range s.engines {
		e.wake()
	}
	s.engineMoved()
	return nil
}

// WaitRateLimits returns when every connected rate-limit engine has the limits
// of a revision, and at least one is connected; at once when the revision made
// nothing different for them. When ctx ends before that, or nothing is in the way
// that time could change, it returns what is: refusals, or that no engine is
// connected. The revision has to be published.
func (s *Server) WaitRateLimits(ctx context.Context, revision int64) []gatestatus.Lag {
	alarm := time.NewTimer(0) // when an engine that went away is no longer waited for
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

// engineLags also returns a channel that is closed when the answer may be
// different, and how much longer to wait for an engine to come back.
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
		lag := gatestatus.Lag{Proxy: RateLimitNode, Envoy: e.address, Reason: gatestatus.Slow, Message: "the rate-limit engine has not answered yet"}
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

// engineMoved tells those who wait to look again. It needs mu.
func (s *Server) engineMoved() {
	close(s.moved)
	s.moved = make(chan struct{})
}
