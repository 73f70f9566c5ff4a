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
	// KeySets are the sets of API keys that routes ask for, sorted, each once.
	KeySets []string
	// AnyKeySets are those whose keys are one of several credentials, sorted, each once.
	AnyKeySets []string
	// HTTPS says that some have a certificate.
	HTTPS bool
	// Chains are those of services that need one, sorted by name, each name once: what
	// has one name is the same but for the host names.
	Chains []TLSChain
}

// Merge returns the needs of all.
func (n Needs) Merge(others ...Needs) Needs {
	domains, chains, sets := slices.Clip(n.RateLimitDomains), slices.Clip(n.Chains), slices.Clip(n.KeySets)
	anySets := slices.Clip(n.AnyKeySets)
	for _, o := range others {
		n.RateLimits = n.RateLimits || o.RateLimits
		n.HTTPS = n.HTTPS || o.HTTPS
		domains, chains = append(domains, o.RateLimitDomains...), append(chains, o.Chains...)
		sets, anySets = append(sets, o.KeySets...), append(anySets, o.AnyKeySets...)
	}
	slices.Sort(sets)
	n.KeySets = slices.Compact(sets)
	slices.Sort(anySets)
	n.AnyKeySets = slices.Compact(anySets)
	slices.Sort(domains)
	n.RateLimitDomains = slices.Compact(domains)
	n.Chains = mergeChains(chains)
	return n
}

// mergeChains makes one chain, for all their host names, of those of one name.
func mergeChains(chains []TLSChain) []TLSChain {
	slices.SortStableFunc(chains, func(a, b TLSChain) int { return cmp.Compare(a.Name, b.Name) })
	var merged []TLSChain
	for i := 0; i < len(chains); {
		chain := chains[i]
		chain.ServerNames = slices.Clip(chain.ServerNames)
		for i++; i < len(chains) && chains[i].Name == chain.Name; i++ {
			chain.ServerNames = append(chain.ServerNames, chains[i].ServerNames...)
		}
		slices.Sort(chain.ServerNames)
		chain.ServerNames = slices.Compact(chain.ServerNames)
		merged = append(merged, chain)
	}
	return merged
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
	return n.RateLimits == o.RateLimits && n.HTTPS == o.HTTPS && slices.Equal(n.RateLimitDomains, o.RateLimitDomains) && slices.Equal(n.KeySets, o.KeySets) && slices.Equal(n.AnyKeySets, o.AnyKeySets) &&
		slices.EqualFunc(n.Chains, o.Chains, func(a, b TLSChain) bool {
			return a.Name == b.Name && slices.Equal(a.ServerNames, b.ServerNames) && slices.Equal(a.Pairs, b.Pairs) &&
				(a.ClientCA == nil) == (b.ClientCA == nil) && (a.ClientCA == nil || *a.ClientCA == *b.ClientCA)
		})
}
