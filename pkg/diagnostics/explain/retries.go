package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// These are the headers from which Envoy's router takes retries.
const (
	retryOn    = "x-envoy-retry-on"
	maxRetries = "x-envoy-max-retries"
)

// retries returns the retries of the router (RetryStateImpl). The conditions are
// those of the headers and of the policy. The number is the header's, or else the
// policy's. Nil means none.
func retries(s subject, rc *routev3.RouteConfiguration, vh *routev3.VirtualHost, r *routev3.Route) (*Retries, error) {
	found, err := retryHeaders(rc, vh, r)
	if err != nil {
		return nil, err
	}
	policy := r.GetRoute().GetRetryPolicy()
	if policy == nil {
		policy = vh.GetRetryPolicy()
	}
	if matches, err := s.matchesAny(policy.GetRetriableRequestHeaders()); !matches || err != nil {
		return nil, err
	}
	out := &Retries{Attempts: 1, Hedge: r.GetRoute().GetHedgePolicy().GetHedgeOnPerTryTimeout(), On: united(found[retryOn], policy.GetRetryOn())}
	if out.On == "" {
		return nil, nil
	}
	if policy.GetNumRetries() != nil {
		out.Attempts = policy.GetNumRetries().GetValue()
	}
	if n, err := strconv.ParseUint(found[maxRetries], 10, 32); err == nil {
		out.Attempts = uint32(n)
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

// united returns the conditions of two lists without duplicates.
func united(a, b string) string {
	var all []string
	for _, on := range strings.Split(a+","+b, ",") {
		if on != "" && !slices.Contains(all, on) {
			all = append(all, on)
		}
	}
	return strings.Join(all, ",")
}

// retryHeaders returns the headers that the router sees. The listener has removed
// the client's (applyEarlyMutation). The router then applies these changes; the
// last one wins.
func retryHeaders(rc *routev3.RouteConfiguration, vh *routev3.VirtualHost, r *routev3.Route) (map[string]string, error) {
	type changes interface {
		GetRequestHeadersToRemove() []string
		GetRequestHeadersToAdd() []*corev3.HeaderValueOption
	}
	levels := []changes{rc, vh, r}
	if !rc.GetMostSpecificHeaderMutationsWins() {
		slices.Reverse(levels)
	}
	found := map[string]string{}
	for _, level := range levels {
		for _, name := range level.GetRequestHeadersToRemove() {
			delete(found, name)
		}
		for _, h := range level.GetRequestHeadersToAdd() {
			name := h.GetHeader().GetKey()
			if name != retryOn && name != maxRetries || h.GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
				return nil, fmt.Errorf("explaining route %q: header %q, which the router adds, is not known", r.GetName(), name)
			}
			found[name] = h.GetHeader().GetValue()
		}
	}
	return found, nil
}
