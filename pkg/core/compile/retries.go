package compile

import (
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// setRetries gives a route, and the routes before it, clusters with the right retries. It comes after all filters,
// which may set the clusters.
func setRetries(r *ir.Route) {
	for _, one := range r.All() {
		if one.Forward == nil {
			continue
		}
		var retries ir.ClusterRetries
		switch {
		case one.Forward.Retries != nil:
			retries = ir.RetriesOfRoute
		case model.Idempotent(one.Match.Methods):
			retries = ir.RetriesIdempotent
		default:
			continue
		}
		one.Forward.Clusters = slices.Clone(one.Forward.Clusters)
		for i, c := range one.Forward.Clusters {
			cluster := *c.Cluster
			cluster.Name, cluster.Retries = c.Name+"/"+string(retries), retries
			one.Forward.Clusters[i].Cluster = &cluster
		}
	}
}

// retriesOf compiles the retries that a route states.
func retriesOf(c model.RouteConfig) *ir.Retries {
	backoff, maxBackoff := c.Retries.Waits()
	methods := c.Methods
	if len(c.Retries.Methods) > 0 {
		methods = c.Retries.Methods
	}
	return &ir.Retries{
		Attempts: c.Retries.Attempts, On: c.Retries.On, Idempotent: model.Idempotent(methods), Methods: c.Retries.Methods,
		PerTry: time.Duration(c.Retries.PerTry), Hedge: c.Retries.Hedge, Backoff: backoff, MaxBackoff: maxBackoff,
	}
}
