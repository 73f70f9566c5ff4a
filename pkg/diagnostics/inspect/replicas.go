package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// replicaStatus is another replica in a status.
type replicaStatus struct {
	Replica string     `json:"replica"`
	State   string     `json:"state"`
	Heard   model.Time `json:"heard_ts"`
	Built   int64      `json:"built_revision"`
	Held    string     `json:"held,omitempty"`
	Envoys  int        `json:"envoys"`
	// More counts the Envoys of the replica that it does not list one by one.
	More int `json:"more_envoys,omitempty"`
}

// The states of another replica.
const (
	heard  = "heard"
	behind = "behind"
)

// seenEnvoy is an Envoy of this replica or of another.
type seenEnvoy struct {
	status.Envoy
	// replica is where it is connected; empty means here.
	replica string
	// current says that it has everything that it should have from what its replica has
	// built; explained, that it lacks only what it refused or waits for; unheard, that
	// this is not known.
	current, explained, unheard bool
	// behind says that its replica has not built what this one has; built is what the
	// replica has built.
	behind bool
	built  int64
}

// seen is what is known of all replicas at one moment.
type seen struct {
	envoys     []seenEnvoy
	conditions []model.Condition
	others     []replicas.Other
}

// observe returns what is known now; nothing without a registry. stored is the newest
// revision that counts.
func (in *Inspector) observe(stored int64) (s seen) {
	if in.Status == nil {
		return s
	}
	own := in.Status.Envoys()
	s.conditions = in.Status.Conditions()
	if in.Logins != nil {
		s.conditions = append(s.conditions, in.Logins()...)
	}
	for _, e := range own {
		s.envoys = append(s.envoys, seenEnvoy{Envoy: e, current: in.isApplied(e), explained: isExplained(e)})
	}
	if in.Others == nil {
		return s
	}
	s.others = in.Others()
	for _, o := range replicas.WithoutMoved(own, s.others) {
		late := !in.isUpToDate(o, stored)
		for _, e := range o.Envoys {
			s.envoys = append(s.envoys, seenEnvoy{
				Envoy: e.Status(), replica: o.Replica, current: e.Current, unheard: o.Unheard, behind: late, built: o.Built,
				explained: e.Answered && !e.Cut && len(e.Waiting)+len(e.Refused) > 0,
			})
		}
		for _, c := range o.Conditions {
			s.addCondition(model.Condition{Key: c.Key, Code: c.Code, Message: c.Message, Proxies: c.Proxies})
		}
	}
	return s
}

// addCondition adds a condition that is not known here. The zero Key is of a kind that
// only a newer program knows.
func (s *seen) addCondition(c model.Condition) {
	same := func(have model.Condition) bool {
		return have.Key == c.Key && have.Code == c.Code && have.Message == c.Message
	}
	if c.Key != (model.Key{}) && !slices.ContainsFunc(s.conditions, same) {
		s.conditions = append(s.conditions, c)
	}
}

// isUpToDate reports whether another replica has built both what this one has, and what
// is stored.
func (in *Inspector) isUpToDate(o replicas.Other, stored int64) bool {
	want := replicas.Position{Built: stored}
	if in.Position != nil {
		own := in.Position()
		if want.Seen = own.Seen; own.Built == stored {
			want.BuiltID = own.BuiltID
		}
	}
	return o.Position().Covers(want)
}

// state returns the state of an Envoy.
func (e seenEnvoy) state() string {
	switch {
	case e.unheard:
		return status.Unheard
	case len(e.Refused) > 0:
		return status.Refused
	case e.current && !e.behind:
		return current
	case len(e.Waiting) > 0:
		return status.Waiting
	}
	return status.Slow
}

// label names an Envoy in a sentence.
func (e seenEnvoy) label() string {
	if e.replica == "" {
		return "the Envoy at " + e.Address
	}
	return "the Envoy at " + e.Address + " (replica " + e.replica + ")"
}

// replicaLags lists the replicas for which it is not known whether their Envoys of a
// proxy have what is stored.
func (s liveState) replicaLags(proxy string) (lags []status.Lag) {
	for _, o := range s.others {
		lag := status.Lag{Proxy: proxy, Replica: o.Replica, Reason: status.Slow}
		switch {
		case o.IsUnknown(proxy):
			lag.Reason, lag.Message = status.Unheard, o.UnheardMessage()
		case !o.Has(proxy):
			continue
		case !s.inspector.isUpToDate(o, s.stored):
			lag.Message = fmt.Sprintf("replica %s does not give its Envoys what is stored yet: revision %d so far", o.Replica,
				o.Built)
		case o.MoreLagging[proxy] > 0:
			lag.Message = fmt.Sprintf("%d more Envoys of replica %s do not have everything yet", o.MoreLagging[proxy], o.Replica)
		default:
			continue
		}
		lags = append(lags, lag)
	}
	return lags
}

// replicaStatuses lists the others.
func (in *Inspector) replicaStatuses(others []replicas.Other, built int64) (list []replicaStatus) {
	for _, o := range others {
		v := replicaStatus{
			Replica: o.Replica, State: heard, Heard: model.At(o.Heard), Built: o.Built, Held: o.Held, Envoys: len(o.Envoys),
		}
		for _, n := range o.More {
			v.More += n
		}
		switch {
		case o.Unheard:
			v.State = status.Unheard
		case !in.isUpToDate(o, built):
			v.State = behind
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b replicaStatus) int { return cmp.Compare(a.Replica, b.Replica) })
	return list
}

// Connected counts the Envoys of a proxy that are connected to any replica.
func (in *Inspector) Connected(proxy string) (n int) {
	s := in.observe(0)
	for _, e := range s.envoys {
		if e.Proxy == proxy {
			n++
		}
	}
	for _, o := range s.others {
		n += o.More[proxy]
	}
	return n
}

// Elsewhere is what is known of the Envoys of a proxy at another replica.
type Elsewhere struct {
	Replica string `json:"replica"`
	// Current is the number that have what they should have.
	Current int `json:"current"`
	// Lagging are the others: they may handle a request differently.
	Lagging []status.Lag `json:"lagging"`
}

// ElsewhereOf describes the Envoys of a proxy that are connected to other replicas; nil
// if there are none.
func (in *Inspector) ElsewhereOf(proxy string) (list []Elsewhere) {
	s := in.observe(in.Snapshots.Revision())
	for _, o := range s.others {
		v := Elsewhere{Replica: o.Replica, Lagging: []status.Lag{}, Current: max(0, o.More[proxy]-o.MoreLagging[proxy])}
		add := func(envoy, reason, message string) {
			v.Lagging = append(v.Lagging,
				status.Lag{Proxy: proxy, Envoy: envoy, Replica: o.Replica, Reason: reason, Message: message})
		}
		if o.IsUnknown(proxy) {
			add("", status.Unheard, o.UnheardMessage())
			list = append(list, v)
			continue
		}
		for _, e := range s.envoys {
			if e.replica != o.Replica || e.Proxy != proxy {
				continue
			}
			switch e.state() {
			case current:
				v.Current++
			case status.Refused:
				add(e.Address, status.Refused,
					fmt.Sprintf("%s refused %s: %s", e.label(), e.Refused[0].Resource, e.Refused[0].Text))
			case status.Waiting:
				add(e.Address, status.Waiting,
					fmt.Sprintf("%s does not have service %q yet: it waits for %s", e.label(), e.Waiting[0].Host, e.Waiting[0].For()))
			default:
				add(e.Address, status.Slow, e.label()+" does not have everything yet")
			}
		}
		if v.Current+len(v.Lagging) > 0 {
			list = append(list, v)
		}
	}
	return list
}
