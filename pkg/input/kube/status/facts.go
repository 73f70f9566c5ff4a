package status

import (
	"slices"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
)

// Cached is an object as it is in the API server.
type Cached struct {
	Object
	// Generation is the newest one.
	Generation int64
	// Make returns the shape of the status of an object of the Gateway API; nil for others.
	Make func(became *translate.Object) Shape
}

// known is what is known of all objects at one moment.
type known struct {
	// served are the proxies of this installation.
	served []string
	// installations are the others; yields collects, for each of them, the first object of both whose status it writes.
	installations *Installations
	yields        map[string]Ref
	// replicas are all replicas, this one first.
	replicas []heard
	// conditions are the mirror's conditions, by object.
	conditions map[model.Key][]model.Condition
}

// heard is a report, prepared for use with many objects.
type heard struct {
	replicas.Other
	// envoys counts the Envoys of each proxy; notable are the Envoys that do not have everything.
	envoys  map[string]int
	notable map[string][]*replicas.Envoy
	// gone are the addresses of Envoys that have probably connected elsewhere; moved counts those of them that have
	// everything.
	gone  map[string]bool
	moved map[string]int
}

// readReport prepares a report. still are its Envoys that have not moved.
func readReport(o replicas.Other, still []replicas.Envoy) heard {
	h := heard{
		Other: o, envoys: map[string]int{}, notable: map[string][]*replicas.Envoy{}, gone: map[string]bool{},
		moved: map[string]int{},
	}
	for _, e := range o.Envoys {
		h.gone[e.Address] = true
	}
	for _, e := range still {
		delete(h.gone, e.Address)
	}
	for i := range o.Envoys {
		e := &o.Envoys[i]
		h.envoys[e.Proxy]++
		if !e.Current || len(e.Refused) > 0 {
			h.notable[e.Proxy] = append(h.notable[e.Proxy], e)
		} else if h.gone[e.Address] {
			h.moved[e.Proxy]++
		}
	}
	for proxy, more := range o.More {
		h.envoys[proxy] += more
	}
	return h
}

func byObject(list []model.Condition) map[model.Key][]model.Condition {
	by := map[model.Key][]model.Condition{}
	for _, c := range list {
		by[c.Key] = append(by[c.Key], c)
	}
	return by
}

// factsOf returns what is known of an object. became is the result of its translation; since is the resourceVersion
// that brought its generation. ok is false while this replica has not built the generation.
func (k known) factsOf(o Cached, became *translate.Object, since int64) (f conditions.Facts, ok bool) {
	own := k.replicas[0]
	if became.Generation != o.Generation || own.Seen[o.Kind] < since {
		return f, false
	}
	made := make(map[model.Key]string, len(became.Made))
	var mirrored []conditions.Problem
	for _, m := range became.Made {
		made[m.Key] = m.Path
		for _, c := range k.conditions[m.Key] {
			if p, told := conditions.FromMirror(c, m.Path); told {
				mirrored = append(mirrored, p)
			}
		}
	}
	f = conditions.Facts{Generation: o.Generation, Proxies: became.Proxies}
	for _, p := range became.Problems {
		f.Problems = append(f.Problems, conditions.Problem(p))
	}
	f.Problems = conditions.WithMirror(f.Problems, mirrored)
	settled := isSettled(o.Status, o.Generation)
	for _, r := range k.replicas {
		v := conditions.Replica{
			Name: r.Replica, Unheard: slices.ContainsFunc(became.Proxies, r.IsUnknown), Built: r.Seen[o.Kind] >= since,
		}
		for _, proxy := range became.Proxies {
			v.Envoys, v.Moved = v.Envoys+r.envoys[proxy], v.Moved+r.moved[proxy]
			for _, e := range r.notable[proxy] {
				if l, lacks := lackOf(e, made, v.Built, e.Seen[o.Kind] >= since || settled && e.Applied > 0); lacks {
					v.Lacks = append(v.Lacks, l)
				} else if r.gone[e.Address] {
					v.Moved++
				}
			}
		}
		f.Replicas = append(f.Replicas, v)
	}
	slices.SortFunc(f.Replicas, func(a, b conditions.Replica) int { return strings.Compare(a.Name, b.Name) })
	return f, true
}

// isSettled reports whether every Envoy has had a generation.
func isSettled(s gatewayv1.Status, generation int64) bool {
	return slices.ContainsFunc(s.Conditions, func(c condition) bool {
		return c.Type == conditions.Programmed && c.Status == "True" && c.ObservedGeneration == generation
	})
}

// lackOf returns why an Envoy does not have an object. made are the objects that it became, built says that the Envoy's
// replica has built it, and had that it is in the last version that the Envoy has in full.
func lackOf(e *replicas.Envoy, made map[model.Key]string, built, had bool) (l conditions.Lack, lacks bool) {
	l.Envoy = e.Address
	for _, r := range e.Refused {
		if slices.ContainsFunc(r.Objects, func(k model.Key) bool { _, ok := made[k]; return ok }) {
			l.Refused, l.Message = true, r.Text
			return l, true
		}
	}
	if had {
		return l, false
	}
	for _, w := range e.Waiting {
		if _, ok := made[w.Object]; ok {
			l.Message = "waits for " + w.For()
			return l, true
		}
	}
	has := built && (e.Current || e.Answered && !e.Cut)
	return l, !has
}
