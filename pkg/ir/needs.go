package ir

import "slices"

// Needs is what routes need of the listener of their proxy. The zero value is
// nothing.
type Needs struct {
	// RateLimits says that some are counted in the rate-limit domain of the
	// proxy.
	RateLimits bool
	// RateLimitDomains are those that routes name, sorted, each once.
	RateLimitDomains []string
}

// Merge returns the needs of both.
func (n Needs) Merge(o Needs) Needs {
	n.RateLimits = n.RateLimits || o.RateLimits
	if len(o.RateLimitDomains) > 0 {
		n.RateLimitDomains = slices.Concat(n.RateLimitDomains, o.RateLimitDomains)
		slices.Sort(n.RateLimitDomains)
		n.RateLimitDomains = slices.Compact(n.RateLimitDomains)
	}
	return n
}

// Equal reports whether a listener for n is one for o.
func (n Needs) Equal(o Needs) bool {
	return n.RateLimits == o.RateLimits && slices.Equal(n.RateLimitDomains, o.RateLimitDomains)
}
