package compile

import (
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addAffinity takes the place of an affinity that came before it.
func addAffinity(r *ir.Route, f *model.AffinityFilter) {
	if r.Forward == nil {
		return
	}
	r.Forward.Affinity = &ir.Affinity{Cookie: f.Cookie, TTL: time.Duration(f.TTL), Header: strings.ToLower(f.Header), Exact: f.Mode == model.AffinityExact}
}

// applyAffinity makes the clusters of a route such as its affinity needs.
func applyAffinity(r *ir.Route) {
	if r.Forward == nil || r.Forward.Affinity == nil {
		return
	}
	r.Forward.Clusters = slices.Clone(r.Forward.Clusters)
	for i, c := range r.Forward.Clusters {
		r.Forward.Clusters[i].Cluster = withAffinity(c.Cluster, r.Forward.Affinity)
	}
}

// withAffinity is a cluster that can keep a client at one endpoint: one whose strategy does not hash gets another
// name, because other routes have it as it is. One that is discovered stays as it is: its assignment goes by its name.
func withAffinity(c *ir.Cluster, a *ir.Affinity) *ir.Cluster {
	if a == nil || a.Exact || c.Discovered || c.Strategy == "ring_hash" || c.Strategy == "maglev" {
		return c
	}
	hashing := *c
	hashing.Name, hashing.Strategy = c.Name+"/hash", "ring_hash"
	return &hashing
}
