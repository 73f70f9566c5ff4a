package compile

import (
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addAffinity replaces an affinity that was added before.
func addAffinity(r *ir.Route, f *model.AffinityFilter) {
	if r.Forward == nil {
		return
	}
	r.Forward.Affinity = &ir.Affinity{Cookie: f.Cookie, TTL: time.Duration(f.TTL), Header: strings.ToLower(f.Header), Exact: f.Mode == model.AffinityExact}
}

// applyAffinity adapts the clusters of a route to its affinity.
func applyAffinity(r *ir.Route) {
	if r.Forward == nil || r.Forward.Affinity == nil {
		return
	}
	r.Forward.Clusters = slices.Clone(r.Forward.Clusters)
	for i, c := range r.Forward.Clusters {
		r.Forward.Clusters[i].Cluster = withAffinity(c.Cluster, r.Forward.Affinity)
	}
}

// withAffinity returns a cluster that can keep a client at one endpoint. If the strategy of c does not hash, the
// result has another name, because other routes use c as it is. A discovered cluster stays as it is: its assignment
// has its name.
func withAffinity(c *ir.Cluster, a *ir.Affinity) *ir.Cluster {
	if a == nil || a.Exact || c.Discovered || c.Strategy == "ring_hash" || c.Strategy == "maglev" {
		return c
	}
	hashing := *c
	hashing.Name, hashing.Strategy = c.Name+"/hash", "ring_hash"
	return &hashing
}
