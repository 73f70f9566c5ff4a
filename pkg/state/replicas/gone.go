package replicas

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// isGone requires mu. For a replica that has posted nothing, it is not known which Envoys to
// look for.
func (h *Hub) isGone(o *other, now time.Time) bool {
	return now.Sub(o.heard) > h.pace.Gone && !o.report.Started.IsZero()
}

// withoutSeen removes the Envoys that have connected elsewhere from replicas that are gone.
// Its cost is in proportion to all Envoys, and only while a replica is gone.
func (h *Hub) withoutSeen(list []Other) []Other {
	gone := func(o Other) bool { return o.Gone }
	if !slices.ContainsFunc(list, gone) {
		return list
	}
	return withoutMoved(h.opts.Registry.Envoys(), list, gone)
}

// buryGone ends the replicas that are gone, once each of their Envoys has connected
// elsewhere. All replicas learn of it: a later one cannot know which Envoys have moved.
func (h *Hub) buryGone(ctx context.Context) error {
	for _, o := range h.Others() {
		if h.opts.Now().Sub(o.Heard) <= h.pace.Gone || !o.Gone || o.hasAny() {
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

// hasAny reports whether the replica has Envoys.
func (r *Report) hasAny() bool { return len(r.Envoys)+len(r.More) > 0 }

// IsUnknown reports whether the state of a proxy's Envoys that were connected to the
// replica is unknown.
func (o Other) IsUnknown(proxy string) bool { return o.Unheard && (!o.Gone || o.Has(proxy)) }

// isIrrelevant reports whether the replica is gone, and all of its Envoys of some proxies
// have connected elsewhere; no proxies means any proxy.
func (o Other) isIrrelevant(proxies []string) bool {
	if len(proxies) == 0 {
		return o.Gone && !o.hasAny()
	}
	return o.Gone && !slices.ContainsFunc(proxies, o.Has)
}

// UnheardMessage says why the state of its Envoys is unknown.
func (o Other) UnheardMessage() string {
	at := o.Heard.UTC().Format(time.TimeOnly)
	switch {
	case o.Started.IsZero():
		return fmt.Sprintf("replica %s has reported nothing: the state of its Envoys is unknown", o.Replica)
	case o.Gone:
		return fmt.Sprintf("replica %s was last heard at %s, and not all of its Envoys have connected elsewhere since: "+
			"their state is unknown", o.Replica, at)
	}
	return fmt.Sprintf("replica %s was last heard at %s: the state of its Envoys is unknown", o.Replica, at)
}
