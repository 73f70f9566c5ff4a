package ir

import (
	"cmp"
	"slices"
	"strings"
)

// Needs is what services need from the listeners of their proxy. The zero value needs
// nothing.
type Needs struct {
	// RateLimits means that some routes are counted in the rate-limit domain of the
	// proxy.
	RateLimits bool
	// RateLimitDomains are the domains that routes name, sorted, without duplicates.
	RateLimitDomains []string
	// KeySets are the sets of API keys that routes require, sorted, without duplicates.
	KeySets []string
	// AnyKeySets are the sets whose keys are one of several credentials, sorted, without
	// duplicates.
	AnyKeySets []string
	// Consumers means that some routes look consumers up.
	Consumers bool
	// AddressLists are the lists of addresses that filters compare, sorted, without duplicates.
	AddressLists []string
	// Countries and Networks mean that some routes allow or deny clients by these: the Envoy needs a database.
	Countries, Networks bool
	// Ports means that some routes are for some ports only.
	Ports bool
	// HTTPS means that some services have a certificate.
	HTTPS bool
	// Chains are the chains of services that need one, sorted by name, without
	// duplicates. Chains with the same name differ only in their host names.
	Chains []TLSChain
}

// Merge returns the needs of n and others together.
func (n Needs) Merge(others ...Needs) Needs {
	domains, chains, sets := slices.Clip(n.RateLimitDomains), slices.Clip(n.Chains), slices.Clip(n.KeySets)
	anySets, lists := slices.Clip(n.AnyKeySets), slices.Clip(n.AddressLists)
	for _, o := range others {
		n.RateLimits = n.RateLimits || o.RateLimits
		n.HTTPS, n.Ports = n.HTTPS || o.HTTPS, n.Ports || o.Ports
		n.Consumers = n.Consumers || o.Consumers
		n.Countries, n.Networks = n.Countries || o.Countries, n.Networks || o.Networks
		domains, chains = append(domains, o.RateLimitDomains...), append(chains, o.Chains...)
		sets, anySets = append(sets, o.KeySets...), append(anySets, o.AnyKeySets...)
		lists = append(lists, o.AddressLists...)
	}
	slices.Sort(sets)
	n.KeySets = slices.Compact(sets)
	slices.Sort(anySets)
	n.AnyKeySets = slices.Compact(anySets)
	slices.Sort(lists)
	n.AddressLists = slices.Compact(lists)
	slices.Sort(domains)
	n.RateLimitDomains = slices.Compact(domains)
	n.Chains = mergeChains(chains)
	return n
}

// mergeChains joins the chains with the same name into one with all their host names.
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

// HasWildcard reports whether a chain has a wildcard among its names. It would also take
// connections for exact names below it.
func (n Needs) HasWildcard() bool {
	return slices.ContainsFunc(n.Chains, func(c TLSChain) bool {
		return slices.ContainsFunc(c.ServerNames, func(name string) bool { return strings.HasPrefix(name, "*.") })
	})
}

// Equal reports whether n and o need the same listeners.
func (n Needs) Equal(o Needs) bool {
	return n.RateLimits == o.RateLimits && n.HTTPS == o.HTTPS && n.Ports == o.Ports && n.Consumers == o.Consumers && n.Countries == o.Countries && n.Networks == o.Networks && slices.Equal(n.RateLimitDomains, o.RateLimitDomains) && slices.Equal(n.KeySets, o.KeySets) && slices.Equal(n.AnyKeySets, o.AnyKeySets) && slices.Equal(n.AddressLists, o.AddressLists) &&
		slices.EqualFunc(n.Chains, o.Chains, func(a, b TLSChain) bool {
			return a.Name == b.Name && slices.Equal(a.ServerNames, b.ServerNames) && slices.Equal(a.Pairs, b.Pairs) &&
				(a.ClientCA == nil) == (b.ClientCA == nil) && (a.ClientCA == nil || *a.ClientCA == *b.ClientCA)
		})
}
