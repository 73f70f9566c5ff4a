package upstreams

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Health reports the health of the upstreams of proxies, from what Envoys report and from what the own Envoy shows.
type Health struct {
	ads *server.Server
	own *OwnEnvoy // nil if there is none
	// handshakes find the reason for failures that Envoy only counts.
	handshakes handshakes
}

// New returns the health of the upstreams of all proxies. own may be nil.
func New(ads *server.Server, own *OwnEnvoy) *Health { return &Health{ads: ads, own: own} }

// view is what is known of some clusters of a proxy.
type view struct {
	loads    map[server.Endpoint][]server.Load
	complete bool                    // every Envoy reports all its failures
	own      map[string]*seenCluster // nil if the own Envoy is not the only one
}

// view returns what is known of the clusters with these names. envoys restricts it to
// the reports of these Envoys; nil means all.
func (h *Health) view(ctx context.Context, proxy string, names []string, envoys []string) view {
	in := map[string]bool{}
	for _, n := range names {
		in[n] = true
	}
	loads, complete := h.ads.Loads(proxy, func(at server.Endpoint, _ health.Tally) bool { return in[at.Cluster] })
	v := view{loads: map[server.Endpoint][]server.Load{}, complete: len(complete) > 0}
	count := 0
	for envoy, all := range complete {
		if envoys == nil || slices.Contains(envoys, envoy) {
			count++
			v.complete = v.complete && all
		}
	}
	for _, l := range loads {
		if envoys == nil || slices.Contains(envoys, l.Envoy) {
			v.loads[l.Endpoint] = append(v.loads[l.Endpoint], l)
		}
	}
	if count == 1 && h.isOwn(proxy, envoys) {
		v.own = map[string]*seenCluster{}
		for part := range slices.Chunk(names, maxInspected) {
			h.own.inspect(ctx, part, func(name string, c *seenCluster) { v.own[name] = c })
		}
	}
	return v
}

// isOwn reports whether the own Envoy is among those of a proxy.
func (h *Health) isOwn(proxy string, envoys []string) bool {
	return slices.ContainsFunc(h.ads.Have(proxy), func(have server.Have) bool {
		return h.own.is(have) && (envoys == nil || slices.Contains(envoys, have.Envoy))
	})
}

// saidOf is the condition of an endpoint, and the Envoys that report it.
type saidOf struct {
	health.Condition
	envoys []string
}

// conditionsOf returns the reported conditions of the endpoints of a proxy's clusters.
func (h *Health) conditionsOf(ctx context.Context, proxy string, v view, clusters []explain.Cluster) [][]saidOf {
	list := make([][]saidOf, len(clusters))
	var unclear []explain.Endpoint
	var facts []health.Facts
	var to []*saidOf
	for i := range clusters {
		c := &clusters[i]
		list[i] = make([]saidOf, len(c.Endpoints))
		for k, e := range c.Endpoints {
			f, envoys := v.factsOf(c, e)
			said := &list[i][k]
			*said = saidOf{health.Of(f), envoys}
			if f.NeedsHandshake(said.Condition) {
				unclear, facts, to = append(unclear, e), append(facts, f), append(to, said)
			}
		}
	}
	snap := h.ads.Snapshot(proxy)
	if len(unclear) == 0 || snap == nil {
		return list
	}
	for i, found := range h.handshakes.find(ctx, snap.Secrets, unclear) {
		facts[i].Finding = found
		to[i].Condition = health.Of(facts[i])
	}
	return list
}

// factsOf returns what is known of an endpoint, and the Envoys that report failures.
func (v view) factsOf(c *explain.Cluster, e explain.Endpoint) (health.Facts, []string) {
	facts := health.Facts{Protocol: c.Protocol, Checked: c.HealthCheck, Reported: v.complete}
	var latest time.Time
	var envoys []string
	for at, loads := range v.loads {
		if at.Cluster != c.Name || at.Port != e.Port || !isEndpoint(c, e, at.Address) {
			continue
		}
		for _, l := range loads {
			facts.Counts = health.Sum(facts.Counts, l.Counts)
			if l.Last.After(latest) {
				latest = l.Last
			}
			if l.Bad() > 0 {
				envoys = append(envoys, l.Envoy)
			}
		}
	}
	if seen := v.own[c.Name]; seen != nil {
		own, tally := seen.ownHealth(e.Address, e.Port, e.DNS)
		if own.Resolved || e.DNS { // otherwise the Envoy does not have the endpoint yet
			facts.Own = &own
		}
		if tally.Fresh(time.Now(), ownWindow) && (tally.Last.After(latest) || tally.Bad() > 0 && facts.Counts.Bad() > 0) {
			facts.Counts = tally.Counts
		}
	}
	slices.Sort(envoys)
	return facts, slices.Compact(envoys)
}

// isEndpoint reports whether Envoy's report of an address is about an endpoint. A host
// name that is the cluster's only endpoint owns every address that is no other
// endpoint's.
func isEndpoint(c *explain.Cluster, e explain.Endpoint, address string) bool {
	if !e.DNS {
		return e.Address == address
	}
	for _, other := range c.Endpoints {
		if other.Address == address || other.DNS && other.Address != e.Address && other.Port == e.Port {
			return false
		}
	}
	return true
}

// AddTo adds the health of the upstreams to an answer about some Envoys of a proxy.
func (h *Health) AddTo(ctx context.Context, proxy string, envoys []string, a *explain.Answer) {
	if a.Forward == nil || len(envoys) == 0 {
		return
	}
	var names []string
	for _, c := range a.Forward.Clusters {
		names = append(names, c.Name)
	}
	v := h.view(ctx, proxy, names, envoys)
	for i, endpoints := range h.conditionsOf(ctx, proxy, v, a.Forward.Clusters) {
		for k, said := range endpoints {
			e := &a.Forward.Clusters[i].Endpoints[k]
			e.Health, e.HealthReason, e.HealthMessage = said.State, said.Reason, said.Message
		}
	}
	a.DescribeHealth()
}

// failing lists the upstreams of a proxy that fail.
func (h *Health) failing(ctx context.Context, proxy string) []inspect.UpstreamHealth {
	bad := map[string]bool{}
	loads, _ := h.ads.Loads(proxy, func(_ server.Endpoint, t health.Tally) bool { return t.Bad() > 0 })
	for _, l := range loads {
		bad[l.Cluster] = true
	}
	if h.isOwn(proxy, nil) {
		for _, name := range h.own.failingClusters(ctx) {
			bad[name] = true
		}
	}
	failing := func(r *snapshot.Resource) bool { return bad[r.Name] }
	return h.list(ctx, proxy, failing, func(u inspect.UpstreamHealth) bool { return u.State.Bad() })
}

// healthOf lists the health of the upstreams with these names, in the clusters of a
// proxy.
func (h *Health) healthOf(ctx context.Context, proxy string, names map[string]bool) []inspect.UpstreamHealth {
	has := func(r *snapshot.Resource) bool {
		if r.Discovered { // its endpoints belong to these
			return slices.ContainsFunc(r.Objects, func(o snapshot.ObjectRef) bool { return names[o.Name] })
		}
		return slices.ContainsFunc(r.Endpoints, func(e snapshot.EndpointRef) bool { return names[e.Name] })
	}
	return h.list(ctx, proxy, has, func(u inspect.UpstreamHealth) bool { return names[u.Upstream] })
}

// maxTold bounds the clusters that one call looks into.
const maxTold = 500

func (h *Health) list(
	ctx context.Context, proxy string, choose func(*snapshot.Resource) bool, keep func(inspect.UpstreamHealth) bool,
) []inspect.UpstreamHealth {
	snap := h.ads.Snapshot(proxy)
	if snap == nil || len(h.ads.Have(proxy)) == 0 {
		return nil
	}
	var clusters []explain.Cluster
	var names []string
	for _, r := range snap.Clusters {
		if len(clusters) == maxTold {
			break
		}
		if !choose(r) {
			continue
		}
		if c, err := explain.ReadCluster(r, snap.Endpoints); err == nil {
			clusters, names = append(clusters, c), append(names, c.Name)
		}
	}
	if len(clusters) == 0 {
		return nil
	}
	v := h.view(ctx, proxy, names, nil)
	var list []inspect.UpstreamHealth
	for i, endpoints := range h.conditionsOf(ctx, proxy, v, clusters) {
		for k, said := range endpoints {
			e := clusters[i].Endpoints[k]
			u := inspect.UpstreamHealth{
				Proxy: proxy, Upstream: e.Upstream, Cluster: clusters[i].Name, Address: e.Address, Port: e.Port,
				Envoys: said.envoys, Condition: said.Condition,
			}
			if keep(u) {
				list = append(list, u)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b inspect.UpstreamHealth) int {
		return cmp.Or(cmp.Compare(a.Upstream, b.Upstream), cmp.Compare(a.Cluster, b.Cluster))
	})
	return list
}

// Upstreams implements inspect.Upstreams.
func (h *Health) Upstreams(ctx context.Context, proxies []string, names []string) []inspect.UpstreamHealth {
	in := map[string]bool{}
	for _, n := range names {
		in[n] = true
	}
	var list []inspect.UpstreamHealth
	for _, p := range proxies {
		if names == nil {
			list = append(list, h.failing(ctx, p)...)
		} else {
			list = append(list, h.healthOf(ctx, p, in)...)
		}
	}
	return list
}
