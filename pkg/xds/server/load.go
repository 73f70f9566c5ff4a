package server

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

const (
	// minReport and maxReport bound the time between two load reports of an Envoy.
	// In between, the time is reportPer for each cluster of its proxy, since a
	// report names every cluster, or for each Envoy, so that all Envoys together
	// send at most about 200 reports per second.
	minReport = 2 * time.Second
	maxReport = time.Minute
	reportPer = 5 * time.Millisecond
	// loadWindow is how long a report counts, or two reports if that is longer.
	loadWindow = 30 * time.Second
	// maxLoads bounds the endpoints that are kept for one Envoy, maxAddress the
	// address of each.
	maxLoads   = 1000
	maxAddress = 64
	// maxFigure bounds each number of a report, so that sums of them do not overflow.
	maxFigure = 1 << 32
)

// Endpoint is an address in a cluster.
type Endpoint struct {
	Cluster, Address string
	Port             uint32
}

// Load is what an Envoy has reported of an endpoint lately.
type Load struct {
	// Envoy is the address that it connected from.
	Envoy string
	Endpoint
	health.Tally
}

// reporter is one Envoy that reports its load.
type reporter struct {
	proxy, address, parent string

	// shares are the requests under way at the last report, by where they are counted.
	shares map[*counted]uint64

	mu      sync.Mutex
	loads   map[Endpoint]*load
	at      time.Time           // of the last report; zero before the first
	window  time.Duration       // how long a report counts
	last    *snapshot.Snapshot  // what the Envoy should have had at the last report
	partial bool                // there was no room for all endpoints
	active  map[Endpoint]uint64 // requests under way at the last report
}

// load is what is kept about one endpoint.
type load struct {
	health.Tally
	version string // of the cluster
}

// StreamLoadStats receives the load reports of one Envoy until it disconnects.
func (s *Server) StreamLoadStats(rpc loadv3.LoadReportingService_StreamLoadStatsServer) error {
	first, err := firstOf(rpc.Context(), rpc.Recv, s.opts.FirstWithin)
	if err != nil {
		return err
	}
	node := first.GetNode()
	if err := nodeID(node.GetId()); err != nil {
		return err
	}
	identity := identityOf(rpc.Context())
	if err := identity.mayUse(node.GetId()); err != nil {
		return s.check(rpc.Context(), err, "node", node.GetId(), "identity", identity.Name)
	}
	r := &reporter{
		proxy: node.GetId(), address: addressOf(rpc.Context()), parent: parentOf(node),
		loads: map[Endpoint]*load{}, window: loadWindow, last: s.Snapshot(node.GetId()),
	}
	if !s.addReporter(r) {
		return status.Error(codes.ResourceExhausted, "this connection reports its load already")
	}
	defer func() {
		s.removeReporter(r)
		s.requests.add(r.proxy, nil, r.shares, time.Now())
	}()
	var every time.Duration
	for {
		snap := s.Snapshot(r.proxy)
		if wanted := s.reportEvery(snap); wanted != every {
			every = wanted
			err := rpc.Send(&loadv3.LoadStatsResponse{
				SendAllClusters: true, ReportEndpointGranularity: true, LoadReportingInterval: durationpb.New(every),
			})
			if err != nil {
				return err
			}
		}
		report, err := rpc.Recv()
		if err != nil {
			return nil //nolint:nilerr // the Envoy disconnected
		}
		now := time.Now()
		failing, upstreams := r.record(report, s.Snapshot(r.proxy), every, now)
		r.shares = s.requests.add(r.proxy, upstreams, r.shares, now)
		if len(failing) > 0 && s.opts.Failing != nil {
			s.opts.Failing(rpc.Context(), r.parent, failing)
		}
	}
}

// reportEvery returns the time between two reports. It doubles as clusters or
// Envoys double, so that it seldom changes.
func (s *Server) reportEvery(snap *snapshot.Snapshot) time.Duration {
	s.mu.Lock()
	n := len(s.reporters)
	s.mu.Unlock()
	if snap != nil {
		n = max(n, len(snap.Clusters))
	}
	every := minReport
	for every < time.Duration(n)*reportPer {
		every *= 2
	}
	return min(every, maxReport)
}

func (s *Server) addReporter(r *reporter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reporters[r.address] != nil {
		return false
	}
	s.reporters[r.address] = r
	return true
}

func (s *Server) removeReporter(r *reporter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reporters, r.address)
}

// record stores a report, and returns the clusters with failed requests, sorted, and
// the requests by upstream. For the former it omits statistics that are, or may be,
// about another version of a cluster than that in snap.
func (r *reporter) record(
	report *loadv3.LoadStatsRequest, snap *snapshot.Snapshot, every time.Duration, now time.Time,
) (failing []string, upstreams map[string]*reported) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window = max(loadWindow, 2*every+every/2)
	for at, l := range r.loads {
		if !l.Fresh(now, r.window) {
			delete(r.loads, at)
		}
	}
	r.partial = false
	by, active := newSpread(snap, r.last), map[Endpoint]uint64{}
	for _, c := range report.GetClusterStats() {
		if len(c.GetUpstreamLocalityStats()) == 0 { // nearly all
			continue
		}
		version, before := versionIn(snap, c.GetClusterName()), versionIn(r.last, c.GetClusterName())
		if version == "" && before == "" {
			continue
		}
		failed := false
		for at, e := range endpointsIn(c) {
			counts, n := countsOf(e, r.active[at])
			delete(r.active, at)
			if n > 0 && len(active) < maxLoads {
				active[at] = min(active[at]+n, maxFigure) // two upstreams may have one address
			}
			by.add(at, counts, n)
			if before == "" || version == before {
				failed = r.add(at, version, counts, now) || failed
			}
		}
		if failed {
			failing = append(failing, c.GetClusterName())
		}
	}
	for at, n := range r.active { // they ended, and the report does not say how
		by.add(at, health.Counts{Untold: n}, 0)
	}
	r.at, r.last, r.active = now, snap, active
	slices.Sort(failing)
	return slices.Compact(failing), by.report
}

// endpointsIn returns what a report says of the endpoints of a cluster.
func endpointsIn(c *endpointv3.ClusterStats) iter.Seq2[Endpoint, *endpointv3.UpstreamEndpointStats] {
	return func(yield func(Endpoint, *endpointv3.UpstreamEndpointStats) bool) {
		for _, locality := range c.GetUpstreamLocalityStats() {
			for _, e := range locality.GetUpstreamEndpointStats() {
				address := e.GetAddress().GetSocketAddress()
				at := Endpoint{c.GetClusterName(), address.GetAddress(), address.GetPortValue()}
				if pipe := e.GetAddress().GetPipe(); pipe != nil {
					at.Address = model.SocketPrefix + pipe.GetPath()
				}
				if len(at.Address) <= maxAddress && !yield(at, e) {
					return
				}
			}
		}
	}
}

// versionIn returns the version of a cluster; empty if there is none.
func versionIn(snap *snapshot.Snapshot, cluster string) string {
	if r := clusterIn(snap, cluster); r != nil {
		return r.Version
	}
	return ""
}

// countsOf returns what is reported of an endpoint, and its requests under way. before
// were under way at the last report.
func countsOf(e *endpointv3.UpstreamEndpointStats, before uint64) (c health.Counts, active uint64) {
	c.Succeeded, active = min(e.GetTotalSuccessfulRequests(), maxFigure), min(e.GetTotalRequestsInProgress(), maxFigure)
	errors := min(e.GetTotalErrorRequests(), maxFigure)
	// Envoy counts a failed connection as an error, but not as an issued request.
	done := min(e.GetTotalIssuedRequests(), maxFigure) + before
	done -= min(done, active)
	c.Failed = min(errors, done-min(done, c.Succeeded))
	c.Unconnected = errors - c.Failed
	c.Untold = done - min(done, c.Succeeded+c.Failed)
	return c, active
}

// add counts the requests to an endpoint. It reports whether some failed.
func (r *reporter) add(at Endpoint, version string, c health.Counts, now time.Time) (failed bool) {
	if c == (health.Counts{}) {
		return false
	}
	failed = c.Bad() > 0
	l := r.loads[at]
	if l == nil || l.version != version {
		if l == nil && len(r.loads) >= maxLoads && !r.makeRoom(failed) {
			r.partial = true
			return failed
		}
		l = &load{version: version}
		r.loads[at] = l
	}
	l.Add(now, r.window, c)
	return failed
}

// makeRoom drops an endpoint without failures to make room for one with failures.
// It reports whether there is room.
func (r *reporter) makeRoom(failing bool) bool {
	if !failing {
		return false
	}
	for at, l := range r.loads {
		if l.Bad() == 0 {
			delete(r.loads, at)
			r.partial = true
			return true
		}
	}
	return false
}

// Loads returns the recent statistics that the connected Envoys of a proxy
// reported, if keep returns true. complete contains, for each Envoy, whether it
// reported all endpoints; false if it reports nothing or had to omit some.
func (s *Server) Loads(proxy string, keep func(Endpoint, health.Tally) bool) (loads []Load, complete map[string]bool) {
	s.mu.Lock()
	snap := s.snapshots[proxy]
	reporters := map[string]*reporter{}
	for st := range s.streams {
		if st.proxy == proxy {
			reporters[st.address] = s.reporters[st.address]
		}
	}
	s.mu.Unlock()
	now := time.Now()
	complete = map[string]bool{}
	for envoy, r := range reporters {
		complete[envoy] = r != nil && r.proxy == proxy && r.list(snap, now, func(at Endpoint, t health.Tally) {
			if keep(at, t) {
				loads = append(loads, Load{envoy, at, t})
			}
		})
	}
	slices.SortFunc(loads, func(a, b Load) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.Envoy, b.Envoy))
	})
	return loads, complete
}

// list calls f for recent statistics. It reports whether they are complete.
func (r *reporter) list(snap *snapshot.Snapshot, now time.Time, f func(Endpoint, health.Tally)) (complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, l := range r.loads {
		if l.Fresh(now, r.window) && l.version == versionIn(snap, at.Cluster) {
			f(at, l.Tally)
		}
	}
	return !r.at.IsZero() && !r.partial
}
