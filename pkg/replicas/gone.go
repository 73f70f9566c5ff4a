package replicas

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// isGone needs mu. Of a replica that has told nothing nobody knows which Envoys to look for.
func (h *Hub) isGone(o *other, now time.Time) bool {
	return now.Sub(o.heard) > h.pace.Gone && !o.report.Started.IsZero()
}

// withoutSeen takes the Envoys that have connected elsewhere from the replicas that are
// gone. It costs something in proportion to all Envoys, and only while there is one.
func (h *Hub) withoutSeen(list []Other) []Other {
	gone := func(o Other) bool { return o.Gone }
	if !slices.ContainsFunc(list, gone) {
		return list
	}
	return withoutMoved(h.opts.Registry.Envoys(), list, gone)
}

// buryGone ends the replicas that are gone, once each of their Envoys has connected
// elsewhere. It tells all: one that came later cannot know which Envoys have moved.
func (h *Hub) buryGone(ctx context.Context) error {
	for _, o := range h.Others() {
		if !o.Gone || o.hasAny() {
			continue
		}
		if err := h.opts.Board.Bury(ctx, o.Replica); err != nil {
			return err
		}
		h.mu.Lock()
		h.forget(o.Replica)
		h.signal()
		h.mu.Unlock()
	}
	return nil
}

// hasAny reports whether it has Envoys.
func (r *Report) hasAny() bool { return len(r.Envoys)+len(r.More) > 0 }

// IsUnknown reports whether nobody knows what the Envoys of a proxy have that were
// connected to the replica.
func (o Other) IsUnknown(proxy string) bool { return o.Unheard && (!o.Gone || o.Has(proxy)) }

// isIrrelevant reports whether the replica is gone, and had no Envoy of some proxies that
// has not connected elsewhere; none means any proxy.
func (o Other) isIrrelevant(proxies []string) bool {
	if len(proxies) == 0 {
		return o.Gone && !o.hasAny()
	}
	return o.Gone && !slices.ContainsFunc(proxies, o.Has)
}

// UnheardMessage says why nobody knows what its Envoys have.
func (o Other) UnheardMessage() string {
	at := o.Heard.UTC().Format(time.TimeOnly)
	switch {
	case o.Started.IsZero():
		return fmt.Sprintf("replica %s has told nothing of itself: nobody knows what its Envoys have", o.Replica)
	case o.Gone:
		return fmt.Sprintf("replica %s was heard of last at %s, and not all of its Envoys have connected elsewhere since: nobody knows what they have", o.Replica, at)
	}
	return fmt.Sprintf("replica %s was heard of last at %s: nobody knows what its Envoys have", o.Replica, at)
}
