package replicas

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

const (
	// keptEvents is how many events a report has. If there are more in half a second,
	// as when 1,000 Envoys connect at the same time, a number replaces the rest.
	keptEvents = 64
	// keptTold bounds the replicas whose last event is remembered.
	keptTold = 1000
)

// outbox has the events of this replica for the others.
type outbox struct {
	cursor status.Cursor
	seq    int64
	events []Event
}

// isAnnounced reports whether the others receive an event: what happened to an Envoy,
// but not each of its answers.
func isAnnounced(e status.Event) bool {
	switch e.Event {
	case status.EventConnect, status.EventDisconnect, status.EventNack, status.EventOverdue:
		return e.Replica == ""
	}
	return false
}

// take adds the new events of the feed.
func (o *outbox) take(feed *status.Feed) {
	for {
		events, more := feed.After(o.cursor, 500)
		if more != nil || len(events) == 0 {
			return
		}
		for _, e := range events {
			if isAnnounced(e) {
				o.seq++
				e.Message = shorten(e.Message)
				o.events = append(o.events, Event{o.seq, e})
			}
		}
		o.events = slices.Clone(o.events[max(0, len(o.events)-keptEvents):])
		o.cursor = feed.Behind(events[len(events)-1])
	}
}

// tell publishes the new events of another replica. Events from before the start of
// this replica are old. It requires mu.
func (h *Hub) tell(r *Report) {
	if len(r.Events) == 0 {
		return
	}
	first, newest := r.Events[0].Seq, r.Events[len(r.Events)-1].Seq
	told := h.told[r.Replica]
	if !h.joined {
		told = newest
	}
	if missed := first - told - 1; missed > 0 {
		h.opts.Registry.RecordReplica(r.Replica, fmt.Sprintf("%d more events of its Envoys are not listed here; "+
			"GET /status shows their state", missed))
	}
	for _, e := range r.Events {
		if e.Seq > told {
			h.opts.Registry.RecordOf(r.Replica, e.Event)
		}
	}
	if len(h.told) >= keptTold {
		maps.DeleteFunc(h.told, func(name string, _ int64) bool { return h.others[name] == nil })
	}
	h.told[r.Replica] = max(told, newest)
}
