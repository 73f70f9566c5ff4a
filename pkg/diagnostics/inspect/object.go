package inspect

import (
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

type (
	// ObjectStatus is how far an object has come on its way to the Envoys: the block
	// "status" of the object.
	ObjectStatus struct {
		Conditions []ObjectCondition `json:"conditions"`
		// Lagging are the Envoys that do not have the current object.
		Lagging []status.Lag `json:"lagging"`

		key     model.Key
		proxies []string // the proxies that the object reaches
	}
	// ObjectCondition is one fact about an object.
	ObjectCondition struct {
		Code    string `json:"code"`
		Status  bool   `json:"status"`
		Message string `json:"message"`
		// Path is the object or link that it is about, if not the object itself.
		Path string `json:"path,omitempty"`
	}
)

// Objects returns the status of each object; nil if nothing is known.
func (in *Inspector) Objects(r store.Reader, objs []model.Object) ([]*ObjectStatus, error) {
	if in.Status == nil {
		return nil, nil
	}
	where, err := reaches(r, objs)
	if err != nil {
		return nil, err
	}
	stored, err := r.Revision()
	if err != nil {
		return nil, err
	}
	seen, list := in.readLiveState(stored), make([]*ObjectStatus, len(objs))
	for i, obj := range objs {
		list[i] = seen.statusOf(obj.Key(), where[i])
	}
	return list, in.addCertificates(list)
}

// liveState is what is known of the Envoys and conditions at one moment.
type liveState struct {
	inspector  *Inspector
	stored     int64
	built      int64
	envoys     map[string][]seenEnvoy // by proxy
	others     []replicas.Other
	conditions map[model.Key][]model.Condition
}

// readLiveState returns the current live state. stored is the stored revision.
func (in *Inspector) readLiveState(stored int64) liveState {
	seen := liveState{
		inspector: in, stored: stored, built: in.Snapshots.Revision(),
		envoys: map[string][]seenEnvoy{}, conditions: map[model.Key][]model.Condition{},
	}
	known := in.observe(stored)
	seen.others = known.others
	for _, e := range known.envoys {
		seen.envoys[e.Proxy] = append(seen.envoys[e.Proxy], e)
	}
	for _, c := range known.conditions {
		for _, k := range subjects(c.Key) {
			seen.conditions[k] = append(seen.conditions[k], c)
		}
	}
	return seen
}

func (s liveState) statusOf(k model.Key, in *reach) *ObjectStatus {
	block := &ObjectStatus{Lagging: []status.Lag{}, key: k, proxies: in.proxies}
	rejected := ""
	for _, proxy := range in.proxies {
		lags, text := s.lags(k, in, proxy)
		block.Lagging = append(block.Lagging, lags...)
		if rejected == "" {
			rejected = text
		}
	}
	own := s.conditions[k]
	if k.Kind == model.KindRoute { // what closes a service closes its routes
		own = slices.Concat(own, s.conditions[serviceOf(k)])
	}
	accepted := ObjectCondition{Code: model.Accepted, Status: true, Message: "it is a part of the configuration"}
	for _, c := range own {
		if c.Code == model.Quarantined {
			accepted.Status, accepted.Message = false, "it cannot work as it is written: "+c.Message
		}
	}
	block.Conditions = []ObjectCondition{accepted, programmedCondition(in, block.Lagging)}
	if rejected != "" {
		block.Conditions = append(block.Conditions, ObjectCondition{Code: model.Rejected, Status: true, Message: rejected})
	}
	said := map[[2]string]bool{}
	for _, c := range own {
		if what := [2]string{c.Code, c.Message}; k.Kind == model.KindFilter && said[what] {
			continue // the same at another of its many places
		} else {
			said[what] = true
		}
		v := ObjectCondition{Code: c.Code, Status: true, Message: c.Message}
		if c.Key != k {
			v.Path = c.Key.Path()
		}
		block.Conditions = append(block.Conditions, v)
	}
	if len(in.proxies) == 0 {
		block.Conditions = append(block.Conditions,
			ObjectCondition{Code: model.Unattached, Status: true, Message: unattachedMessage(k)})
	}
	return block
}

func programmedCondition(in *reach, lagging []status.Lag) ObjectCondition {
	c := ObjectCondition{Code: model.Programmed}
	switch {
	case len(in.proxies) == 0:
		c.Message = "no proxy uses it"
	case len(lagging) == 0:
		c.Status, c.Message = true, "every Envoy that it reaches has it"
	default:
		c.Message = lagging[0].Message
		if more := len(lagging) - 1; more > 0 {
			c.Message += fmt.Sprintf("; lagging lists this and %d more", more)
		}
	}
	return c
}

func unattachedMessage(k model.Key) string {
	switch k.Kind {
	case model.KindService:
		return "no proxy serves it: POST /proxy/{proxy}" + k.Path()
	case model.KindRoute:
		return "no proxy serves its service: POST /proxy/{proxy}" + serviceOf(k).Path()
	case model.KindGlobalConfig:
		return "there is no proxy that it could apply to: POST /proxy"
	}
	return "no service of a proxy uses it"
}

// lags lists the Envoys of a proxy that lack the object, with the error message of one
// that refused it.
func (s liveState) lags(k model.Key, in *reach, proxy string) (lags []status.Lag, rejected string) {
	add := func(e seenEnvoy, reason, format string, args ...any) {
		lags = append(lags, status.Lag{
			Proxy: proxy, Envoy: e.Address, Replica: e.replica, Reason: reason, Message: fmt.Sprintf(format, args...),
		})
	}
	if s.built < s.stored {
		add(seenEnvoy{}, status.Slow, "revision %d is stored; Envoys get revision %d so far", s.stored, s.built)
		return lags, ""
	}
	lags = s.replicaLags(proxy)
	hidden := slices.ContainsFunc(s.others, func(o replicas.Other) bool { return o.IsUnknown(proxy) || o.More[proxy] > 0 })
	if len(s.envoys[proxy]) == 0 && !hidden {
		add(seenEnvoy{}, status.NotConnected, "no Envoy of proxy %q is connected", proxy)
	}
	for _, e := range s.envoys[proxy] {
		if e.unheard || e.behind {
			continue // replicaLags has them
		}
		if r, own, ok := refusalOf(e.Envoy, k, in); ok {
			what := "it"
			if !own {
				what = fmt.Sprintf("service %q", r.Resource)
			}
			add(e, status.Refused, "%s refused %s: %s", e.label(), what, r.Text)
			if own && rejected == "" {
				rejected = r.Text
			}
			continue
		}
		if w, ok := waitOf(e.Envoy, k, in); ok {
			add(e, status.Waiting, "%s does not have service %q yet: it waits for %s", e.label(), w.Host, w.For())
			continue
		}
		if !e.current && !e.explained {
			add(e, status.Slow, "%s has not answered yet", e.label())
		}
	}
	return lags, rejected
}

// refusalOf returns an Envoy's refusal of an object, or of a service that the object is
// a part of.
func refusalOf(e status.Envoy, k model.Key, in *reach) (r status.Refusal, own, ok bool) {
	for _, r := range e.Refused {
		from := objectsOf(e, r)
		if slices.Contains(from, k) {
			return r, true, true
		}
		if k.Kind != model.KindUpstream && in.has(from[0]) {
			return r, false, true
		}
	}
	return r, false, false
}

// waitOf returns the wait that delays an object; for an upstream, one for a cluster
// that it is in.
func waitOf(e status.Envoy, k model.Key, in *reach) (status.Wait, bool) {
	for _, w := range e.Waiting {
		if !in.has(w.Object) {
			continue
		}
		if k.Kind != model.KindUpstream ||
			slices.ContainsFunc(w.Clusters, func(c status.Awaited) bool { return slices.Contains(c.Objects, k) }) {
			return w, true
		}
	}
	return status.Wait{}, false
}

// isExplained reports whether an Envoy that does not have everything lacks only what it
// refused or waits for: it has answered everything that it was sent of listeners and
// routes. (While clusters warm, Envoy delays answers about what listeners and routes
// need, so those prove nothing.)
func isExplained(e status.Envoy) bool {
	return e.HasAnswered(ListenerType, RouteType) && len(e.Waiting)+len(e.Refused) > 0
}
