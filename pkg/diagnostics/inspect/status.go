package inspect

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

type (
	// Status is the status of the process, or of one proxy, as StatusOf returns it.
	Status struct {
		Replica      string          `json:"replica"`
		Revision     int64           `json:"revision"`
		Built        int64           `json:"built_revision"`
		Held         string          `json:"held,omitempty"`
		Replicas     []replicaStatus `json:"replicas,omitempty"`
		Proxies      []proxyStatus   `json:"proxies"`
		WaitingNodes []waitingNode   `json:"waiting_nodes"`
		LimitsBy     string          `json:"rate_limits,omitempty"`
		Engines      []engineStatus  `json:"ratelimit_engines,omitempty"`
		// Upstreams are the failing ones.
		Upstreams     []upstreamStatus  `json:"upstreams,omitempty"`
		MoreUpstreams int               `json:"more_upstreams,omitempty"`
		Conditions    []conditionStatus `json:"conditions"`
	}
	proxyStatus struct {
		Proxy  string        `json:"proxy"`
		Envoys []envoyStatus `json:"envoys"`
	}
	envoyStatus struct {
		Replica   string          `json:"replica,omitempty"`
		Address   string          `json:"address"`
		Version   string          `json:"version"`
		Connected model.Time      `json:"connected_ts"`
		Identity  string          `json:"identity,omitempty"`
		Instance  string          `json:"instance,omitempty"`
		Applied   int64           `json:"applied_revision"`
		State     string          `json:"state"`
		Waiting   []waitStatus    `json:"waiting"`
		Refused   []refusedStatus `json:"refused"`
		Types     []typeStatus    `json:"types"`
	}
	engineStatus struct {
		Replica      string        `json:"replica,omitempty"`
		Address      string        `json:"address"`
		Connected    model.Time    `json:"connected_ts"`
		Identity     string        `json:"identity,omitempty"`
		State        string        `json:"state"`
		Acknowledged *answerStatus `json:"acknowledged,omitempty"`
		Refused      *answerStatus `json:"refused,omitempty"`
	}
	waitStatus struct {
		Object string          `json:"object"`
		For    []awaitedStatus `json:"for"`
		Since  model.Time      `json:"since"`
		Until  model.Time      `json:"until,omitzero"`
	}
	// awaitedStatus has one of the names.
	awaitedStatus struct {
		Cluster  string   `json:"cluster,omitempty"`
		Secret   string   `json:"secret,omitempty"`
		Provider string   `json:"provider,omitempty"`
		Objects  []string `json:"objects"`
	}
	refusedStatus struct {
		Objects  []string   `json:"objects"`
		Message  string     `json:"message"`
		Type     string     `json:"type"`
		Resource string     `json:"resource"`
		Revision int64      `json:"revision"`
		At       model.Time `json:"at"`
	}
	typeStatus struct {
		Type         string        `json:"type"`
		Sent         *answerStatus `json:"sent,omitempty"`
		Acknowledged *answerStatus `json:"acknowledged,omitempty"`
		Refused      *answerStatus `json:"refused,omitempty"`
	}
	answerStatus struct {
		Revision  int64      `json:"revision"`
		At        model.Time `json:"at"`
		Resources int        `json:"resources"`
		Message   string     `json:"message,omitempty"`
	}
	waitingNode struct {
		Replica   string     `json:"replica,omitempty"`
		Node      string     `json:"node"`
		Address   string     `json:"address"`
		Version   string     `json:"version"`
		Connected model.Time `json:"connected_ts"`
		Identity  string     `json:"identity,omitempty"`
		Create    string     `json:"create"`
	}
	conditionStatus struct {
		Path    string `json:"path"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
)

// current is the state of an Envoy that has everything that it should have. The other
// states are the reasons of a status.Lag.
const current = "current"

// Scope is the stored part of what a status is about. All and OfProxy read it.
type Scope struct {
	revision int64
	proxies  []string
	// parts are the proxy, its services and its global configs, each true; nil means
	// everything.
	parts map[model.Key]bool
}

// All reads the scope of everything.
func All(r store.Reader) (Scope, error) {
	revision, err := r.Revision()
	if err != nil {
		return Scope{}, err
	}
	proxies, err := r.List(store.Query{Kind: model.KindProxy, ByName: true})
	s := Scope{revision: revision, proxies: make([]string, len(proxies))}
	for i, p := range proxies {
		s.proxies[i] = p.Key().Name()
	}
	return s, err
}

// OfProxy reads the scope of one proxy.
func OfProxy(r store.Reader, proxy string) (Scope, error) {
	revision, err := r.Revision()
	if err != nil {
		return Scope{}, err
	}
	s := Scope{revision, []string{proxy}, map[model.Key]bool{model.ProxyKey(proxy): true}}
	return s, addBelow(r, proxy, s.parts)
}

// StatusOf describes the Envoys of some proxies and their configuration. The status of
// everything also has the Envoys without a proxy and the rate-limit engines.
func (in *Inspector) StatusOf(ctx context.Context, scope Scope) Status {
	view := Status{Replica: in.Replica, Revision: scope.revision, Held: in.Held(), WaitingNodes: []waitingNode{}}
	view.Built = in.Snapshots.Revision()
	known := in.observe(view.Built)
	view.Replicas = in.replicaStatuses(known.others, view.Built)
	in.fillStatus(&view, scope.proxies, known.envoys)
	view.Upstreams, view.MoreUpstreams = in.failing(ctx, view.Proxies)
	if scope.parts == nil {
		view.LimitsBy, view.Engines = in.LimitsBy, in.engines(known.others)
		view.WaitingNodes = waitingNodes(scope.proxies, known.envoys)
		view.Conditions = conditionViews(known.conditions, func(model.Condition) bool { return true })
		return view
	}
	proxy := scope.proxies[0]
	view.Conditions = conditionViews(known.conditions, func(c model.Condition) bool {
		return (c.Proxies == nil || slices.Contains(c.Proxies, proxy)) && isBelow(c.Key, scope.parts)
	})
	return view
}

// engines lists the connected rate-limit engines.
func (in *Inspector) engines(others []replicas.Other) (list []engineStatus) {
	if in.Status == nil {
		return nil
	}
	for _, e := range in.Status.Engines() {
		list = append(list, engineView("", e.Address, e.Connected, e.Identity, e.Types))
	}
	for _, o := range others {
		for _, e := range o.Engines {
			v := engineView(o.Replica, e.Address, e.Connected, e.Identity, e.Types)
			if o.Unheard {
				v.State = status.Unheard
			}
			list = append(list, v)
		}
	}
	return list
}

func engineView(
	replica, address string, connected time.Time, identity string, types map[string]status.Answers,
) engineStatus {
	v := engineStatus{
		Replica: replica, Address: address, Connected: model.At(connected), Identity: identity, State: status.Slow,
	}
	for _, t := range types { // there is at most one
		v.Acknowledged, v.Refused = answerOf(t.Acked), answerOf(t.Rejected)
		switch {
		case t.Sent.At.After(t.Acked.At) && t.Sent.At.After(t.Rejected.At):
		case t.Rejected.At.After(t.Acked.At):
			v.State = status.Refused
		default:
			v.State = current
		}
	}
	return v
}

// addBelow adds the services of a proxy and the global configs that apply to it.
func addBelow(r store.Reader, proxy string, below map[model.Key]bool) error {
	links, err := r.List(store.Query{Kind: model.KindProxyService, To: []model.Key{model.ProxyKey(proxy)}})
	if err != nil {
		return err
	}
	for _, l := range links {
		below[usedByLink(l)] = true
	}
	if links, err = r.List(store.Query{Kind: model.KindProxyGlobalConfig}); err != nil {
		return err
	}
	linked := map[model.Key]bool{}
	for _, l := range links {
		linked[usedByLink(l)] = linked[usedByLink(l)] || l.Key().Owner().Name() == proxy
	}
	configs, err := r.List(store.Query{Kind: model.KindGlobalConfig})
	if err != nil {
		return err
	}
	for _, g := range configs {
		here, anywhere := linked[g.Key()]
		below[g.Key()] = here || !anywhere
	}
	return nil
}

// isBelow reports whether a condition is about a part of a proxy.
func isBelow(k model.Key, below map[model.Key]bool) bool {
	about := subjects(k)
	switch k.Kind {
	case model.KindRoute, model.KindRouteUpstream, model.KindRouteFilter:
		return below[serviceOf(about[0])]
	}
	return below[about[0]]
}

func conditionViews(list []model.Condition, show func(model.Condition) bool) []conditionStatus {
	views := []conditionStatus{}
	for _, c := range list {
		if show(c) {
			views = append(views, conditionStatus{c.Key.Path(), c.Code, c.Message})
		}
	}
	return views
}

// fillStatus adds the proxies and their Envoys.
func (in *Inspector) fillStatus(view *Status, proxies []string, envoys []seenEnvoy) {
	view.Proxies = make([]proxyStatus, len(proxies))
	at := make(map[string]int, len(proxies))
	for i, p := range proxies {
		at[p] = i
		view.Proxies[i] = proxyStatus{Proxy: p, Envoys: []envoyStatus{}}
	}
	for _, e := range envoys {
		if i, ok := at[e.Proxy]; ok {
			view.Proxies[i].Envoys = append(view.Proxies[i].Envoys, envoyView(e, view.Built))
		}
	}
}

// envoyView returns an Envoy as the status shows it. built is what the Envoys of this
// replica receive.
func envoyView(e seenEnvoy, built int64) envoyStatus {
	if e.replica != "" {
		built = e.built
	}
	v := envoyStatus{
		Replica: e.replica, Address: e.Address, Version: e.Version, Connected: model.At(e.Connected), Identity: e.Identity,
		Instance: e.Instance,
		Applied:  e.Applied, State: e.state(), Waiting: []waitStatus{}, Refused: []refusedStatus{}, Types: []typeStatus{},
	}
	if e.current && len(e.Refused) == 0 {
		v.Applied = max(v.Applied, built) // later revisions changed nothing for this proxy
	}
	for _, w := range e.Waiting {
		wait := waitStatus{
			Object: w.Object.Path(), For: []awaitedStatus{}, Since: model.At(w.Since), Until: model.At(w.Until),
		}
		for _, c := range w.Clusters {
			wait.For = append(wait.For, awaitedStatus{Cluster: c.Name, Objects: paths(c.Objects)})
		}
		for _, secret := range w.Secrets {
			wait.For = append(wait.For, awaitedStatus{Secret: secret.Name, Objects: paths(secret.Objects)})
		}
		for _, p := range w.Providers {
			wait.For = append(wait.For, awaitedStatus{Provider: p.Name, Objects: paths(p.Objects)})
		}
		v.Waiting = append(v.Waiting, wait)
	}
	for _, r := range e.Refused {
		v.Refused = append(v.Refused, refusedStatus{
			paths(objectsOf(e.Envoy, r)), r.Text, status.TypeName(r.TypeURL), r.Resource, r.Revision, model.At(r.At),
		})
	}
	for _, typeURL := range slices.Sorted(maps.Keys(e.Types)) {
		t := e.Types[typeURL]
		v.Types = append(v.Types,
			typeStatus{status.TypeName(typeURL), answerOf(t.Sent), answerOf(t.Acked), answerOf(t.Rejected)})
	}
	return v
}

func answerOf(a status.Answer) *answerStatus {
	if a.At.Equal(time.Time{}) {
		return nil
	}
	return &answerStatus{a.Revision, model.At(a.At), len(a.Resources) + a.More, a.Text}
}

// waitingNodes lists the Envoys whose node id names no proxy.
func waitingNodes(proxies []string, envoys []seenEnvoy) []waitingNode {
	nodes := []waitingNode{}
	for _, e := range envoys {
		if _, known := slices.BinarySearch(proxies, e.Proxy); known {
			continue
		}
		create := "POST /proxy with Name=" + e.Proxy
		if p := (&model.Proxy{Name: e.Proxy}); slices.ContainsFunc(p.Validate(),
			func(f model.FieldError) bool { return f.Field == "Name" }) {
			create = "none: no proxy can have this name; set node.id in the Envoy's bootstrap to the name of a proxy"
		}
		nodes = append(nodes,
			waitingNode{e.replica, e.Proxy, e.Address, e.Version, model.At(e.Connected), e.Identity, create})
	}
	return nodes
}
