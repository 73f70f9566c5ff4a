package translate

import (
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	previousprioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

const (
	// defaultAttempts allows for another endpoint, and one more if two fail at the same time.
	defaultAttempts = 2
	// The default retries wait at most 5 and 15 ms.
	defaultBackoff    = 5 * time.Millisecond
	maxDefaultBackoff = 50 * time.Millisecond
)

// conditions returns the default conditions. Only "reset" repeats requests that may have reached a backend.
func conditions(idempotent bool) string {
	const unseen = "connect-failure,refused-stream,reset-before-request"
	if idempotent {
		return unseen + ",reset"
	}
	return unseen
}

func setHeader(name, value string) *corev3.HeaderValueOption { return seam.SetHeader(name, value) }

// clusterRetries are the retries of all requests to a cluster, nil for those of the route. A policy in each virtual
// host or route would cost Envoy time per host at every change, and headers of the route configuration cost four times
// as much per request (ADR 0104).
func clusterRetries(c *ir.Cluster) (*routev3.RetryPolicy, error) {
	if c.Retries == ir.RetriesOfRoute {
		return nil, nil
	}
	p := &routev3.RetryPolicy{
		RetryOn: conditions(c.Retries == ir.RetriesIdempotent), NumRetries: u32(defaultAttempts),
		RetryBackOff: backoff(defaultBackoff, maxDefaultBackoff),
	}
	return p, avoidTriedEndpoints(p, c)
}

func backoff(base, most time.Duration) *routev3.RetryPolicy_RetryBackOff {
	return &routev3.RetryPolicy_RetryBackOff{BaseInterval: seconds(base), MaxInterval: seconds(most)}
}

// applyRetries sets the retries that a route states. Its clusters have none.
func applyRetries(action *routev3.RouteAction, r *ir.Route) error {
	own := r.Forward.Retries
	if own == nil || own.Attempts == 0 {
		return nil
	}
	action.RetryPolicy = retryPolicy(*own)
	if own.Hedge {
		action.HedgePolicy = &routev3.HedgePolicy{HedgeOnPerTryTimeout: true}
	}
	clusters := make([]*ir.Cluster, len(r.Forward.Clusters))
	for i, c := range r.Forward.Clusters {
		clusters[i] = c.Cluster
	}
	return avoidTriedEndpoints(action.RetryPolicy, clusters...)
}

// retryPolicy translates the retries of a route.
func retryPolicy(r ir.Retries) *routev3.RetryPolicy {
	out := &routev3.RetryPolicy{
		RetryOn: strings.Join(r.On, ","), NumRetries: u32(r.Attempts), RetryBackOff: backoff(r.Backoff, r.MaxBackoff),
	}
	if len(r.On) == 0 {
		out.RetryOn = conditions(r.Idempotent)
	}
	if len(r.Methods) > 0 {
		out.RetriableRequestHeaders = []*routev3.HeaderMatcher{methodMatcher(r.Methods)}
	}
	if r.PerTry > 0 {
		out.PerTryTimeout = seconds(r.PerTry)
	}
	return out
}

// avoidTriedEndpoints sends a retry to an endpoint that the request has not tried. A retry stays in its cluster, so
// this needs several endpoints in one of them; with one, it would cost time for every request.
func avoidTriedEndpoints(p *routev3.RetryPolicy, clusters ...*ir.Cluster) error {
	if !slices.ContainsFunc(clusters, hasSeveralEndpoints) {
		return nil
	}
	predicate, err := pack(&previoushostsv3.PreviousHostsPredicate{})
	p.RetryHostPredicate = []*routev3.RetryPolicy_RetryHostPredicate{{
		Name:       "envoy.retry_host_predicates.previous_hosts",
		ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: predicate},
	}}
	p.HostSelectionRetryMaxAttempts = 3
	if err != nil || !slices.ContainsFunc(clusters, func(c *ir.Cluster) bool { return c.Priorities }) {
		return err
	}
	p.RetryPriority, err = avoidTriedPriorities()
	return err
}

// avoidTriedPriorities sends the second retry to endpoints of the next priority, even if it is not known yet that those
// before have failed. The first one goes to another endpoint with the same priority, if there is one.
func avoidTriedPriorities() (*routev3.RetryPolicy_RetryPriority, error) {
	packed, err := pack(&previousprioritiesv3.PreviousPrioritiesConfig{UpdateFrequency: defaultAttempts})
	return &routev3.RetryPolicy_RetryPriority{
		Name:       "envoy.retry_priorities.previous_priorities",
		ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{TypedConfig: packed},
	}, err
}

// hasSeveralEndpoints reports whether a cluster may have more than one endpoint. A DNS name or a discovered upstream
// may have many.
func hasSeveralEndpoints(c *ir.Cluster) bool {
	return c.Discovered || len(c.Endpoints) > 1 || slices.ContainsFunc(c.Endpoints, func(e ir.Endpoint) bool { return e.DNS })
}
