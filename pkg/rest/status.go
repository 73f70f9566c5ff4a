package rest

import (
	"maps"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// What GET /status and GET /proxy/{proxy}/status show.
type (
	statusView struct {
		Replica      string         `json:"replica"`
		Revision     int64          `json:"revision"`
		Built        int64          `json:"built_revision"`
		Held         string         `json:"held,omitempty"`
		Proxies      []proxyStatus  `json:"proxies"`
		WaitingNodes []waitingNode  `json:"waiting_nodes"`
		LimitsBy     string         `json:"rate_limits,omitempty"`
		Engines      []engineStatus `json:"ratelimit_engines,omitempty"`
		// Upstreams are those that fail.
		Upstreams     []upstreamView  `json:"upstreams,omitempty"`
		MoreUpstreams int             `json:"more_upstreams,omitempty"`
		Conditions    []conditionView `json:"conditions"`
	}
	proxyStatus struct {
		Proxy  string        `json:"proxy"`
		Envoys []envoyStatus `json:"envoys"`
	}
	envoyStatus struct {
		Address   string        `json:"address"`
		Version   string        `json:"version"`
		Connected model.Time    `json:"connected_ts"`
		Applied   int64         `json:"applied_revision"`
		State     string        `json:"state"`
		Waiting   []waitStatus  `json:"waiting"`
		Refused   []refusedView `json:"refused"`
		Types     []typeStatus  `json:"types"`
	}
	engineStatus struct {
		Address      string      `json:"address"`
		Connected    model.Time  `json:"connected_ts"`
		State        string      `json:"state"`
		Acknowledged *answerView `json:"acknowledged,omitempty"`
		Refused      *answerView `json:"refused,omitempty"`
	}
	waitStatus struct {
		Object string          `json:"object"`
		For    []clusterStatus `json:"for"`
		Since  model.Time      `json:"since"`
		Until  model.Time      `json:"until,omitzero"`
	}
	clusterStatus struct {
		Cluster string   `json:"cluster"`
		Objects []string `json:"objects"`
	}
	refusedView struct {
		Objects  []string   `json:"objects"`
		Message  string     `json:"message"`
		Type     string     `json:"type"`
		Resource string     `json:"resource"`
		Revision int64      `json:"revision"`
		At       model.Time `json:"at"`
	}
	typeStatus struct {
		Type         string      `json:"type"`
		Sent         *answerView `json:"sent,omitempty"`
		Acknowledged *answerView `json:"acknowledged,omitempty"`
		Refused      *answerView `json:"refused,omitempty"`
	}
	answerView struct {
		Revision  int64      `json:"revision"`
		At        model.Time `json:"at"`
		Resources int        `json:"resources"`
		Message   string     `json:"message,omitempty"`
	}
	waitingNode struct {
		Node      string     `json:"node"`
		Address   string     `json:"address"`
		Version   string     `json:"version"`
		Connected model.Time `json:"connected_ts"`
		Create    string     `json:"create"`
	}
	conditionView struct {
		Path    string `json:"path"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
)

// current is the state of an Envoy that has all that it should have. The others
// are the reasons of a status.Lag.
const current = "current"

func (s *server) addStatus() {
	s.get("/status", s.readStatus)
	s.get("/proxy/:proxy/status", s.readProxyStatus)
	s.get("/proxy/:proxy/xds", s.readResources)
}

func (s *server) readStatus(c *gin.Context) error {
	if err := noQuery(c); err != nil {
		return err
	}
	view := statusView{Replica: s.replica, Held: s.held(), LimitsBy: s.limitsBy}
	var proxies []model.Object
	err := s.read(c.Request.Context(), func(r store.Reader) (err error) {
		if view.Revision, err = r.Revision(); err != nil {
			return err
		}
		proxies, err = r.List(store.Query{Kind: model.KindProxy, ByName: true})
		return err
	})
	if err != nil {
		return err
	}
	envoys, conditions := s.observe()
	names := make([]string, len(proxies))
	for i, p := range proxies {
		names[i] = p.Key().Name
	}
	s.fillStatus(&view, names, envoys)
	view.Upstreams, view.MoreUpstreams = s.failing(c.Request.Context(), view.Proxies)
	view.WaitingNodes = waitingNodes(names, envoys)
	view.Engines = s.engines()
	view.Conditions = conditionViews(conditions, func(model.Key) bool { return true })
	s.answer(c, s.word+"_status", []statusView{view})
	return nil
}

func (s *server) readProxyStatus(c *gin.Context) error {
	if err := noQuery(c); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	view, proxy := statusView{Replica: s.replica, Held: s.held(), WaitingNodes: []waitingNode{}}, n[model.KindProxy]
	below := map[model.Key]bool{model.ProxyKey(proxy): true}
	err = s.read(c.Request.Context(), func(r store.Reader) (err error) {
		if err := exist(r, proxyAt(n)); err != nil {
			return err
		}
		if view.Revision, err = r.Revision(); err != nil {
			return err
		}
		return addBelow(r, proxy, below)
	})
	if err != nil {
		return err
	}
	envoys, conditions := s.observe()
	conditions = slices.DeleteFunc(conditions, func(c model.Condition) bool {
		return c.Proxies != nil && !slices.Contains(c.Proxies, proxy)
	})
	s.fillStatus(&view, []string{proxy}, envoys)
	view.Upstreams, view.MoreUpstreams = s.failing(c.Request.Context(), view.Proxies)
	view.Conditions = conditionViews(conditions, func(k model.Key) bool { return isBelow(k, proxy, below) })
	s.answer(c, s.word+"_status", []statusView{view})
	return nil
}

// observe returns what is known now; nothing for an API without a registry.
func (s *server) observe() ([]status.Envoy, []model.Condition) {
	if s.status == nil {
		return nil, nil
	}
	return s.status.Envoys(), s.status.Conditions()
}

// engines lists the connected rate-limit engines.
func (s *server) engines() (list []engineStatus) {
	if s.status == nil {
		return nil
	}
	for _, e := range s.status.Engines() {
		v := engineStatus{Address: e.Address, Connected: model.At(e.Connected), State: status.Slow}
		for _, t := range e.Types { // there is one at most
			v.Acknowledged, v.Refused = answerOf(t.Acked), answerOf(t.Rejected)
			switch {
			case t.Sent.At.After(t.Acked.At) && t.Sent.At.After(t.Rejected.At):
			case t.Rejected.At.After(t.Acked.At):
				v.State = status.Refused
			default:
				v.State = current
			}
		}
		list = append(list, v)
	}
	return list
}

// addBelow adds the services of a proxy and the global configs that hold for it.
func addBelow(r store.Reader, proxy string, below map[model.Key]bool) error {
	links, err := r.List(store.Query{Kind: model.KindProxyService, Proxy: proxy})
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
		linked[usedByLink(l)] = linked[usedByLink(l)] || l.Owner().Name == proxy
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
func isBelow(k model.Key, proxy string, below map[model.Key]bool) bool {
	about := concerned(k)
	switch k.Kind {
	case model.KindProxyService:
		return about[0].Name == proxy
	case model.KindRoute, model.KindRouteUpstream, model.KindRouteFilter:
		return below[serviceOf(about[0])]
	}
	return below[about[0]]
}

func conditionViews(list []model.Condition, show func(model.Key) bool) []conditionView {
	views := []conditionView{}
	for _, c := range list {
		if show(c.Key) {
			views = append(views, conditionView{c.Key.Path(), c.Code, c.Message})
		}
	}
	return views
}

// fillStatus adds the proxies and their Envoys.
func (s *server) fillStatus(view *statusView, proxies []string, envoys []status.Envoy) {
	view.Built = s.snapshots.Revision()
	view.Proxies = make([]proxyStatus, len(proxies))
	at := make(map[string]int, len(proxies))
	for i, p := range proxies {
		at[p] = i
		view.Proxies[i] = proxyStatus{Proxy: p, Envoys: []envoyStatus{}}
	}
	for _, e := range envoys {
		if i, ok := at[e.Proxy]; ok {
			view.Proxies[i].Envoys = append(view.Proxies[i].Envoys, s.envoyStatus(e, view.Built))
		}
	}
}

func (s *server) envoyStatus(e status.Envoy, built int64) envoyStatus {
	v := envoyStatus{
		Address: e.Address, Version: e.Version, Connected: model.At(e.Connected), Applied: e.Applied,
		Waiting: []waitStatus{}, Refused: []refusedView{}, Types: []typeStatus{},
	}
	switch {
	case len(e.Refused) > 0:
		v.State = status.Refused
	case s.isApplied(e):
		// What came later changed nothing for this proxy.
		v.State, v.Applied = current, max(v.Applied, built)
	case len(e.Waiting) > 0:
		v.State = status.Waiting
	default:
		v.State = status.Slow
	}
	for _, w := range e.Waiting {
		wait := waitStatus{Object: model.ServiceKey(w.Host).Path(), For: []clusterStatus{}, Since: model.At(w.Since)}
		if !w.Until.IsZero() {
			wait.Until = model.At(w.Until)
		}
		for _, c := range w.Clusters {
			wait.For = append(wait.For, clusterStatus{c, paths(upstreamsOf(c))})
		}
		v.Waiting = append(v.Waiting, wait)
	}
	for _, r := range e.Refused {
		v.Refused = append(v.Refused, refusedView{
			paths(origin(e, r)), r.Text, status.TypeName(r.TypeURL), r.Resource, r.Revision, model.At(r.At),
		})
	}
	for _, typeURL := range slices.Sorted(maps.Keys(e.Types)) {
		t := e.Types[typeURL]
		v.Types = append(v.Types, typeStatus{status.TypeName(typeURL), answerOf(t.Sent), answerOf(t.Acked), answerOf(t.Rejected)})
	}
	return v
}

// isApplied reports whether an Envoy has all of the newest configuration that
// was built for its proxy.
func (s *server) isApplied(e status.Envoy) bool {
	wanted := s.snapshots.Wanted(e.Proxy)
	return wanted > 0 && e.Applied >= wanted
}

func answerOf(a status.Answer) *answerView {
	if a.At.Equal(time.Time{}) {
		return nil
	}
	return &answerView{a.Revision, model.At(a.At), len(a.Resources), a.Text}
}

// waitingNodes lists the Envoys whose node id names no proxy.
func waitingNodes(proxies []string, envoys []status.Envoy) []waitingNode {
	nodes := []waitingNode{}
	for _, e := range envoys {
		if _, known := slices.BinarySearch(proxies, e.Proxy); known {
			continue
		}
		create := "POST /proxy with Name=" + e.Proxy
		if p := (&model.Proxy{Name: e.Proxy}); slices.ContainsFunc(p.Validate(), func(f model.FieldError) bool { return f.Field == "Name" }) {
			create = "none: no proxy can have this name; set node.id in the Envoy's bootstrap to the name of a proxy"
		}
		nodes = append(nodes, waitingNode{e.Proxy, e.Address, e.Version, model.At(e.Connected), create})
	}
	return nodes
}
