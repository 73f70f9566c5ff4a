package replicas

import (
	"net"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/status"
)

// noteFirst records when each Envoy of a report was first heard of. For the Envoys in
// the first report of a replica, that is not known.
func (r *Report) noteFirst(before *Report, now time.Time) {
	if before.Started.IsZero() {
		return
	}
	known := make(map[string]time.Time, len(before.Envoys))
	for _, e := range before.Envoys {
		known[e.Address] = e.first
	}
	for i := range r.Envoys {
		e := &r.Envoys[i]
		if first, ok := known[e.Address]; ok {
			e.first = first
		} else {
			e.first = now
		}
	}
}

// place is what an Envoy keeps when it connects elsewhere.
type place struct{ proxy, host string }

func placeOf(proxy, address string) place {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return place{proxy, host}
}

// WithoutMoved returns the others without the Envoys that have moved. An Envoy that
// connects to a replica from the same address and under the same proxy as an Envoy of a
// replica that was not heard since, counts as that Envoy until the other replica
// reports that it still has it: a killed replica reports nothing of the streams that it
// lost. own are the Envoys of this replica. Replicas that are gone have no such Envoys
// in their reports.
func WithoutMoved(own []status.Envoy, others []Other) []Other {
	return withoutMoved(own, others, func(o Other) bool { return !o.Gone })
}

// withoutMoved removes Envoys from some of the others.
func withoutMoved(own []status.Envoy, others []Other, from func(Other) bool) []Other {
	arrivals := map[place][]arrival{}
	for _, e := range own {
		at := placeOf(e.Proxy, e.Address)
		arrivals[at] = append(arrivals[at], arrival{e.Connected, -1})
	}
	for i, o := range others {
		for _, e := range o.Envoys {
			if at := placeOf(e.Proxy, e.Address); !e.first.IsZero() {
				arrivals[at] = append(arrivals[at], arrival{e.first, i})
			}
		}
	}
	list := make([]Other, len(others))
	for i, o := range others {
		if !from(o) {
			list[i] = o
			continue
		}
		kept := make([]Envoy, 0, len(o.Envoys))
		for _, e := range o.Envoys {
			if !takeArrival(arrivals, placeOf(e.Proxy, e.Address), i, o.Heard) {
				kept = append(kept, e)
			}
		}
		if len(kept) < len(o.Envoys) {
			r := *o.Report
			r.Envoys = kept
			o.Report = &r
		}
		list[i] = o
	}
	return list
}

// arrival is an Envoy that came to a replica; -1 is this one.
type arrival struct {
	at      time.Time
	replica int
}

// takeArrival finds an arrival at another replica after a moment, and uses it up.
func takeArrival(arrivals map[place][]arrival, at place, replica int, after time.Time) bool {
	for i, a := range arrivals[at] {
		if a.replica != replica && a.at.After(after) {
			arrivals[at] = append(arrivals[at][:i:i], arrivals[at][i+1:]...)
			return true
		}
	}
	return false
}
