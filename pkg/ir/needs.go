package ir

import (
	"cmp"
	"slices"
	"strings"
)

// Needs is what services need of the listeners of their proxy. The zero value is
// nothing.
type Needs struct {
	// RateLimits says that some routes are counted in the rate-limit domain of the
	// proxy.
	RateLimits bool
	// RateLimitDomains are those that routes name, sorted, each once.
	RateLimitDomains []string
	// HTTPS says that some have a certificate.
	HTTPS bool
	// Chains are those of services that need one, sorted by name, each name once.
	Chains []TLSChain
}

// Merge returns the needs of both.
func (n Needs) Merge(o Needs) Needs {
	n.RateLimits = n.RateLimits || o.RateLimits
	n.HTTPS = n.HTTPS || o.HTTPS
	n.RateLimitDomains = mergeSorted(n.RateLimitDomains, o.RateLimitDomains, cmp.Compare[string])
	if len(o.Chains) == 0 {
		return n
	}
	chains := map[string]TLSChain{}
	for _, c := range slices.Concat(n.Chains, o.Chains) {
		if had, ok := chains[c.Name]; ok {
			c.ServerNames = mergeSorted(had.ServerNames, c.ServerNames, cmp.Compare[string])
			c.Pairs = mergeSorted(had.Pairs, c.Pairs, func(a, b *Pair) int { return cmp.Compare(a.Secret, b.Secret) })
		}
		chains[c.Name] = c
	}
	n.Chains = make([]TLSChain, 0, len(chains))
	for _, c := range chains {
		n.Chains = append(n.Chains, c)
	}
	slices.SortFunc(n.Chains, func(a, b TLSChain) int { return cmp.Compare(a.Name, b.Name) })
	return n
}

// mergeSorted returns what is in one of two sorted lists, each once.
func mergeSorted[T comparable](a, b []T, compare func(a, b T) int) []T {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, compare)
	return slices.CompactFunc(all, func(a, b T) bool { return compare(a, b) == 0 })
}

// HasWildcard reports whether a chain has a wildcard among its names, which would
// also take connections for exact names below it.
func (n Needs) HasWildcard() bool {
	return slices.ContainsFunc(n.Chains, func(c TLSChain) bool {
		return slices.ContainsFunc(c.ServerNames, func(name string) bool { return strings.HasPrefix(name, "*.") })
	})
}

// Equal reports whether listeners for n are those for o.
func (n Needs) Equal(o Needs) bool {
	return n.RateLimits == o.RateLimits && n.HTTPS == o.HTTPS && slices.Equal(n.RateLimitDomains, o.RateLimitDomains) &&
		slices.EqualFunc(n.Chains, o.Chains, func(a, b TLSChain) bool {
			return a.Name == b.Name && slices.Equal(a.ServerNames, b.ServerNames) && slices.Equal(a.Pairs, b.Pairs) &&
				(a.ClientCA == nil) == (b.ClientCA == nil) && (a.ClientCA == nil || *a.ClientCA == *b.ClientCA)
		})
}
