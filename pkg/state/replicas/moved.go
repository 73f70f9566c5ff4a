package replicas

import (
	"net"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
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

// envoyIdentity is what an Envoy keeps when it connects elsewhere: its instance if it has one,
// otherwise its host.
type envoyIdentity struct{ proxy, instance, host string }

// instanceOf returns the identity of an Envoy that says who it is.
func instanceOf(proxy, instance string) envoyIdentity {
	return envoyIdentity{proxy: proxy, instance: instance}
}

func hostOf(proxy, address string) envoyIdentity {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return envoyIdentity{proxy: proxy, host: host}
}

// arrivals are the Envoys that came to a replica, by their identities.
type arrivals map[envoyIdentity][]*arrival

// arrival is an Envoy that came to a replica; -1 is this one.
type arrival struct {
	at      time.Time
	replica int
	used    bool
}

// arrivalsOf returns the arrivals here and at others. own are the Envoys of this replica.
func arrivalsOf(own []status.Envoy, others []Other) arrivals {
	all := arrivals{}
	for _, e := range own {
		all.add(&arrival{at: e.Connected, replica: -1}, e.Proxy, e.Instance, e.Address)
	}
	for i, o := range others {
		for _, e := range o.Envoys {
			if !e.first.IsZero() {
				all.add(&arrival{at: e.first, replica: i}, e.Proxy, e.Instance, e.Address)
			}
		}
	}
	return all
}

func (a arrivals) add(one *arrival, proxy, instance, address string) {
	host := hostOf(proxy, address)
	a[host] = append(a[host], one)
	if instance != "" {
		a[instanceOf(proxy, instance)] = append(a[instanceOf(proxy, instance)], one)
	}
}

// take finds an arrival at another replica after a moment, and uses it up. It returns nil if there is none.
func (a arrivals) take(at envoyIdentity, replica int, after time.Time) *arrival {
	for _, one := range a[at] {
		if !one.used && one.replica != replica && one.at.After(after) {
			one.used = true
			return one
		}
	}
	return nil
}

// WithoutMoved returns the others without the Envoys that have moved. An Envoy that
// connects to a replica under the same proxy and with the same instance as an Envoy of a
// replica that was not heard since, counts as that Envoy until the other replica
// reports that it still has it: a killed replica reports nothing of the streams that it
// lost. For what is left, an Envoy from the same address counts, which is a guess. own are
// the Envoys of this replica. Replicas that are gone have no such Envoys in their reports.
func WithoutMoved(own []status.Envoy, others []Other) []Other {
	return withoutMoved(own, others, func(o Other) bool { return !o.Gone })
}

// withoutMoved removes Envoys from some of the others.
func withoutMoved(own []status.Envoy, others []Other, from func(Other) bool) []Other {
	came := arrivalsOf(own, others)
	list := append([]Other(nil), others...)
	// First those that are known for sure.
	for _, where := range []func(Envoy) (envoyIdentity, bool){
		func(e Envoy) (envoyIdentity, bool) { return instanceOf(e.Proxy, e.Instance), e.Instance != "" },
		func(e Envoy) (envoyIdentity, bool) { return hostOf(e.Proxy, e.Address), true },
	} {
		for i, o := range list {
			if !from(o) {
				continue
			}
			kept := make([]Envoy, 0, len(o.Envoys))
			for _, e := range o.Envoys {
				if at, ok := where(e); !ok || came.take(at, i, o.Heard) == nil {
					kept = append(kept, e)
				}
			}
			if len(kept) < len(o.Envoys) {
				r := *o.Report
				r.Envoys = kept
				list[i].Report = &r
			}
		}
	}
	return list
}

// noteDeparted finds the replicas whose process counts as dead although not much time has passed: each of its Envoys
// says who it is and has come to another replica since the last sign of life, and the board was read later than a
// living replica takes to report that they left. read is when the board was last read.
func (h *Hub) noteDeparted(list []Other, read time.Time) {
	came := arrivalsOf(h.opts.Registry.Envoys(), list)
	for i, o := range list {
		if o.Gone || len(o.Envoys) == 0 || len(o.More) > 0 {
			continue
		}
		departed := true
		for _, e := range o.Envoys {
			at := came.take(instanceOf(e.Proxy, e.Instance), i, o.Heard)
			if at == nil || read.Sub(at.at) < departedReports*h.pace.Publish {
				departed = false
				break
			}
		}
		if departed {
			list[i].Unheard, list[i].Gone = true, true
		}
	}
}

// departedReports is how many reports a living replica has missed when its Envoys have left it and it has not said so.
const departedReports = 4
