package server

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

const (
	// maxRequests bounds the pairs of proxy and upstream whose requests are counted.
	// Further upstreams of a proxy are counted together, as OtherUpstreams.
	maxRequests = 2000
	// keepRequests is how long the requests of an upstream are kept when no cluster of
	// the proxy has it any more, if there is room: they are read once more, and an upstream
	// that is soon attached again continues.
	keepRequests = 5 * time.Minute
	// sweepEvery is the least time between two attempts to make room.
	sweepEvery = time.Second
)

// OtherUpstreams stands for the upstreams of a proxy that are not counted one by one.
const OtherUpstreams = "other"

// Requests are what the Envoys of a proxy have reported of the requests to an upstream
// since this process started.
type Requests struct {
	Proxy string
	// Upstream is the name of an upstream; or several, joined with +, if it is not known
	// which of the upstreams of a cluster got the requests; or OtherUpstreams.
	Upstream string
	health.Counts
	// Active are the requests under way at the last report of each connected Envoy.
	Active uint64
}

// Requests returns the requests of all upstreams that had some, in no order.
func (s *Server) Requests() []Requests { return s.requests.list(time.Now()) }

// requests counts requests by proxy and upstream. All names are from snapshots.
type requests struct {
	snapshot func(proxy string) *snapshot.Snapshot

	mu     sync.Mutex
	counts map[pair]*counted
	swept  time.Time // when room was made last
}

type pair struct{ proxy, upstream string }

type counted struct {
	health.Counts
	active uint64
	gone   time.Time // since when no cluster of the proxy has the upstream; zero: one has
}

// reported is what one report says of an upstream.
type reported struct {
	health.Counts
	active uint64
	live   bool // the proxy has the upstream now
}

// add adds a report, by the upstreams of a proxy. before are the requests that were under
// way at the Envoy's last report; add returns those of this one.
func (q *requests) add(
	proxy string, report map[string]*reported, before map[*counted]uint64, now time.Time,
) map[*counted]uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c, n := range before {
		c.active -= n
	}
	active := map[*counted]uint64{}
	for upstream, r := range report {
		c := q.counts[pair{proxy, upstream}]
		if c == nil && r.live {
			c = q.start(pair{proxy, upstream}, now)
		}
		if c == nil {
			continue // it was deleted, and nothing is known of it
		}
		c.Counts = health.Sum(c.Counts, r.Counts)
		if r.active > 0 {
			c.active += r.active
			active[c] += r.active
		}
	}
	return active
}

// start returns what counts a pair that is not counted yet.
func (q *requests) start(at pair, now time.Time) *counted {
	if len(q.counts) >= maxRequests && now.Sub(q.swept) >= sweepEvery {
		q.swept = now
		q.sweep(now, 0)
	}
	if len(q.counts) >= maxRequests {
		at.upstream = OtherUpstreams
	}
	c := q.counts[at]
	if c == nil {
		c = &counted{}
		q.counts[at] = c
	}
	return c
}

// sweep drops what belongs to no upstream for longer than keep.
func (q *requests) sweep(now time.Time, keep time.Duration) {
	live := map[*counted]bool{}
	seen := map[string]bool{}
	for at := range q.counts {
		if seen[at.proxy] {
			continue
		}
		seen[at.proxy] = true
		snap := q.snapshot(at.proxy)
		if snap == nil {
			continue
		}
		live[q.counts[pair{at.proxy, OtherUpstreams}]] = true
		for _, cluster := range snap.Clusters {
			live[q.counts[pair{at.proxy, together(cluster)}]] = true
			for _, upstream := range cluster.Objects {
				live[q.counts[pair{at.proxy, upstream.Name}]] = true
			}
		}
	}
	maps.DeleteFunc(q.counts, func(_ pair, c *counted) bool {
		switch {
		case live[c]:
			c.gone = time.Time{}
			return false
		case c.gone.IsZero():
			c.gone = now
		}
		return now.Sub(c.gone) >= keep
	})
}

func (q *requests) list(now time.Time) []Requests {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep(now, keepRequests)
	list := make([]Requests, 0, len(q.counts))
	for at, c := range q.counts {
		list = append(list, Requests{at.proxy, at.upstream, c.Counts, c.active})
	}
	return list
}

// together returns one name for all upstreams of a cluster; empty if it has none.
func together(cluster *snapshot.Resource) string {
	switch len(cluster.Objects) {
	case 0:
		return ""
	case 1:
		return cluster.Objects[0].Name
	}
	name, _, _ := strings.Cut(cluster.Name, "/")
	return name
}

// spread adds up a report by upstreams.
type spread struct {
	// snap and last are what the Envoy should have now, and should have had at its last
	// report.
	snap, last *snapshot.Snapshot
	clusters   map[string]*members
	report     map[string]*reported
}

// members are the upstreams of a cluster.
type members struct {
	together string
	live     bool
	// at are the upstreams by address, if there are several; empty if two have the
	// address. Those with a host name have no address.
	at map[Endpoint]string
}

func newSpread(snap, last *snapshot.Snapshot) *spread {
	return &spread{snap, last, map[string]*members{}, map[string]*reported{}}
}

func (s *spread) add(at Endpoint, c health.Counts, active uint64) {
	m := s.members(at.Cluster)
	if m.together == "" {
		return
	}
	upstream, found := m.at[at]
	if !found {
		upstream = m.at[Endpoint{Cluster: at.Cluster, Port: at.Port}]
	}
	upstream = cmp.Or(upstream, m.together)
	r := s.report[upstream]
	if r == nil {
		r = &reported{}
		s.report[upstream] = r
	}
	r.Counts = health.Sum(r.Counts, c)
	r.active += active
	r.live = r.live || m.live
}

// members returns the upstreams of a cluster. Until the Envoy has a change, it reports of
// the endpoints before, so it returns those too.
func (s *spread) members(cluster string) *members {
	m := s.clusters[cluster]
	if m != nil {
		return m
	}
	m = &members{at: map[Endpoint]string{}}
	s.clusters[cluster] = m
	for _, snap := range slices.Compact([]*snapshot.Snapshot{s.last, s.snap}) {
		r := clusterIn(snap, cluster)
		if r == nil {
			continue
		}
		m.together, m.live = together(r), snap == s.snap
		if len(r.Objects) > 1 {
			m.note(r, snap)
		}
	}
	return m
}

func (m *members) note(r *snapshot.Resource, snap *snapshot.Snapshot) {
	endpoints := r.Endpoints
	if r.Discovered {
		endpoints = nil
		if a := find(snap.Endpoints, r.Name); a != nil {
			endpoints = a.Endpoints
		}
	}
	for _, e := range endpoints {
		at := Endpoint{Cluster: r.Name, Port: uint32(e.Port)} //nolint:gosec // ports are 1 to 65535
		if !e.DNS {
			at.Address = e.Address
		}
		if known, found := m.at[at]; found && known != e.Name {
			m.at[at] = ""
			continue
		}
		m.at[at] = e.Name
	}
}

// clusterIn returns a cluster; nil if there is none.
func clusterIn(snap *snapshot.Snapshot, cluster string) *snapshot.Resource {
	if snap == nil {
		return nil
	}
	return find(snap.Clusters, cluster)
}

func find(list []*snapshot.Resource, name string) *snapshot.Resource {
	i, found := slices.BinarySearchFunc(list, name, func(r *snapshot.Resource, name string) int {
		return cmp.Compare(r.Name, name)
	})
	if !found {
		return nil
	}
	return list[i]
}
