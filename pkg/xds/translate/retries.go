package translate

import (
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// These are the headers from which Envoy's router takes retries. It removes them
// before it forwards the request.
const (
	retryOn    = "x-envoy-retry-on"
	maxRetries = "x-envoy-max-retries"
)

// defaultAttempts allows for another endpoint, and one more if two fail at the
// same time.
const defaultAttempts = 2

// defaultConditions never repeat a request that has reached a backend.
func defaultConditions() []string {
	return []string{"connect-failure", "refused-stream", "reset-before-request"}
}

// reset is the condition that also repeats requests that may have reached a backend.
const reset = "reset"

// defaultRetries are the retries of all routes, as headers of the route
// configuration. A retry policy in each virtual host or route would cost Envoy
// time per host at every change (ADR 0043). The wait before a retry cannot be a
// header: the bootstrap sets it.
func defaultRetries() []*corev3.HeaderValueOption {
	return []*corev3.HeaderValueOption{
		setHeader(retryOn, strings.Join(defaultConditions(), ",")),
		setHeader(maxRetries, strconv.Itoa(defaultAttempts)),
	}
}

func setHeader(name, value string) *corev3.HeaderValueOption { return seam.SetHeader(name, value) }

// applyRetries sets retries that add to the default ones or replace them. Envoy
// adds the conditions of a policy to those of the headers, but takes the number
// from the headers. So a route with its own retries removes the headers.
func applyRetries(out *routev3.Route, action *routev3.RouteAction, r *ir.Route) error {
	own, many := r.Forward.Retries, endpointCount(r.Forward.Clusters) > 1
	if own != nil {
		out.RequestHeadersToRemove = []string{retryOn, maxRetries}
	}
	switch {
	case own != nil && own.Attempts == 0:
		return nil
	case own != nil:
		action.RetryPolicy = retryPolicy(*own, r.Match.Methods)
		if own.Hedge {
			action.HedgePolicy = &routev3.HedgePolicy{HedgeOnPerTryTimeout: true}
		}
	case idempotent(r.Match.Methods):
		action.RetryPolicy = &routev3.RetryPolicy{RetryOn: reset}
	case many:
		action.RetryPolicy = &routev3.RetryPolicy{}
	}
	if !many {
		return nil
	}
	return avoidTriedEndpoints(action.RetryPolicy)
}

// retryPolicy translates the retries of a route.
func retryPolicy(r ir.Retries, methods []string) *routev3.RetryPolicy {
	if len(r.Methods) > 0 {
		methods = r.Methods
	}
	on := r.On
	if len(on) == 0 {
		on = defaultConditions()
		if idempotent(methods) {
			on = append(on, reset)
		}
	}
	out := &routev3.RetryPolicy{
		RetryOn:    strings.Join(on, ","),
		NumRetries: u32(r.Attempts),
		RetryBackOff: &routev3.RetryPolicy_RetryBackOff{
			BaseInterval: seconds(r.Backoff), MaxInterval: seconds(r.MaxBackoff),
		},
	}
	if len(r.Methods) > 0 {
		out.RetriableRequestHeaders = []*routev3.HeaderMatcher{methodMatcher(r.Methods)}
	}
	if r.PerTry > 0 {
		out.PerTryTimeout = seconds(r.PerTry)
	}
	return out
}

// avoidTriedEndpoints sends a retry to an endpoint that the request has not
// tried. With only one endpoint, this would cost time for every request.
func avoidTriedEndpoints(p *routev3.RetryPolicy) error {
	predicate, err := pack(&previoushostsv3.PreviousHostsPredicate{})
	p.RetryHostPredicate = []*routev3.RetryPolicy_RetryHostPredicate{{
		Name:       "envoy.retry_host_predicates.previous_hosts",
		ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: predicate},
	}}
	p.HostSelectionRetryMaxAttempts = 3
	return err
}

// idempotent reports whether repeating a request has the effect of one (RFC 9110
// section 9.2.2). An empty list means all methods.
func idempotent(methods []string) bool {
	return len(methods) > 0 && !slices.ContainsFunc(methods, func(m string) bool {
		return !slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}, m)
	})
}

// endpointCount returns how many endpoints a request may go to. A DNS name or a
// discovered upstream may have many.
func endpointCount(clusters []ir.WeightedCluster) int {
	n := 0
	for _, c := range clusters {
		if c.Discovered {
			n += 2
		}
		for _, e := range c.Endpoints {
			n++
			if e.DNS {
				n++
			}
		}
	}
	return n
}
