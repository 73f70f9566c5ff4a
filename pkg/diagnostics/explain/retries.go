package explain

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// retries returns the retries of the router (RetryStateImpl). The policy of the cluster replaces that of the route,
// which replaces that of the host. Nil means none.
func retries(s subject, cluster *routev3.RetryPolicy, vh *routev3.VirtualHost, r *routev3.Route) (*Retries, error) {
	policy := cluster
	if policy == nil {
		policy = r.GetRoute().GetRetryPolicy()
	}
	if policy == nil {
		policy = vh.GetRetryPolicy()
	}
	if matches, err := s.matchesAny(policy.GetRetriableRequestHeaders()); !matches || err != nil || policy.GetRetryOn() == "" {
		return nil, err
	}
	out := &Retries{Attempts: 1, Hedge: r.GetRoute().GetHedgePolicy().GetHedgeOnPerTryTimeout(), On: policy.GetRetryOn()}
	if policy.GetNumRetries() != nil {
		out.Attempts = policy.GetNumRetries().GetValue()
	}
	if policy.GetPerTryTimeout() != nil {
		out.PerTry = duration(policy.GetPerTryTimeout())
	}
	return out, nil
}

// matchesAny reports whether one of the conditions matches, or there are no
// conditions.
func (s subject) matchesAny(list []*routev3.HeaderMatcher) (bool, error) {
	for _, m := range list {
		c, err := s.checkHeader(m)
		if c.Holds || err != nil {
			return c.Holds, err
		}
	}
	return len(list) == 0, nil
}
