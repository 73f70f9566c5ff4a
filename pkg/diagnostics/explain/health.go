package explain

import (
	"fmt"
	"net/http"
	"slices"
)

// maxIll bounds the number of unhealthy upstreams that are described as steps.
const maxIll = 3

// DescribeHealth adds steps for failing upstreams and mentions them in the message.
// Their health must be set.
func (a *Answer) DescribeHealth() {
	if a.Forward == nil || a.Code != Forwarded {
		return
	}
	for i := range a.Forward.Clusters {
		if c := &a.Forward.Clusters[i]; c.hasPriorities() && !c.stays && !c.Panics {
			c.setPercents(float64(c.Weight) / a.Forward.weights())
		}
	}
	ill, all := 0, 0
	first := ""
	for _, c := range a.Forward.Clusters {
		for _, e := range c.Endpoints {
			all++
			if !e.Health.Bad() {
				continue
			}
			ill++
			told := fmt.Sprintf("upstream %s (%s:%d) is %s: %s", e.name(), e.Address, e.Port, e.Health, e.HealthMessage)
			if first == "" {
				first = told
			}
			if ill <= maxIll {
				a.step("health", told)
			}
		}
	}
	if ill > maxIll {
		a.step("health", fmt.Sprintf("%d more upstreams fail", ill-maxIll))
	}
	switch {
	case a.Forward.isIll():
		status := http.StatusServiceUnavailable
		if a.Request.Method == "" { // the connection is closed
			status = 0
		}
		a.endWith(NoHealthyUpstream, status, "answer", "no upstream receives requests: "+first)
	case ill == 1 && all == 1:
		a.Message += ", but " + first
	case ill > 0:
		a.Message += fmt.Sprintf(", but %d of %d upstreams fail: %s", ill, all, first)
	}
}

// isIll reports whether no endpoint receives requests, because of its health.
func (f *Forward) isIll() bool {
	for _, c := range f.Clusters {
		if c.Weight > 0 && (c.Panics || slices.ContainsFunc(c.Endpoints, func(e Endpoint) bool { return !e.Draining && !e.Health.Excluded() })) {
			return false
		}
	}
	return true
}

// name returns the name of the upstream, or of the endpoint's cluster.
func (e Endpoint) name() string {
	if e.Upstream == "" {
		return "without a name"
	}
	return e.Upstream
}
