package limits

import (
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// statedID is the ID of the domain of filters that state their own limit. No
// global config has it: their IDs begin at 1.
const statedID = 0

// Domain is the limits of one domain. If two global configs use the same name,
// their domains are still different.
type Domain struct {
	// ID is the ID of the global config.
	ID int64
	*model.RateLimitConfig
}

// NewDomain returns a domain of rules with defaults for everything else.
func NewDomain(id int64, name string, rules []model.RateLimitRule) *Domain {
	return &Domain{id, &model.RateLimitConfig{Domain: name, Descriptors: rules}}
}

// DomainOf returns the domain of a globalconfig_ratelimit; nil for a global
// config of another type.
func DomainOf(g *model.ParsedGlobalConfig) *Domain {
	c, ok := g.Spec.(*model.RateLimitConfig)
	if !ok {
		return nil
	}
	return &Domain{g.ID, c}
}

// StatedDomain returns the domain of the filters and global configs that state their own limit, by key.
func StatedDomain(rules map[model.Key]model.RateLimitRule) *Domain {
	list := slices.SortedFunc(maps.Values(rules), func(a, b model.RateLimitRule) int { return strings.Compare(a.Value, b.Value) })
	return NewDomain(statedID, model.StatedDomain, list)
}

// SameShape reports whether the same descriptors meet a limit of d and of o,
// which may be nil. The limits then differ only in their numbers.
func (d *Domain) SameShape(o *Domain) bool {
	if d == nil || o == nil {
		return d == o
	}
	return d.RateLimitConfig == o.RateLimitConfig || d.Domain == o.Domain && sameShape(d.Descriptors, o.Descriptors)
}

func sameShape(a, b []model.RateLimitRule) bool {
	return slices.EqualFunc(a, b, func(a, b model.RateLimitRule) bool {
		return a.Key == b.Key && a.Value == b.Value && (a.RateLimit == nil) == (b.RateLimit == nil) &&
			sameShape(a.Descriptors, b.Descriptors)
	})
}

// Proxy contains the domains of one proxy. The zero value has none.
type Proxy struct {
	// Default is for filters that name no domain.
	Default *Domain
	// Named contains each domain that filters name and the proxy has, and always that of filters that state
	// their own limit.
	Named map[string]*Domain
}

// OfProxy chooses the domains of a proxy among those that apply to it: the first
// by name, and the first by name for each of names. The domain that filters state
// themselves applies to every proxy.
func OfProxy(t *model.ProxyTree, names []string) Proxy {
	p := Proxy{Named: map[string]*Domain{model.StatedDomain: StatedDomain(nil)}}
	for _, g := range t.GlobalConfigs {
		if p.Default != nil && len(p.Named) == len(names)+1 {
			break
		}
		d := DomainOf(g)
		if d == nil {
			continue
		}
		if p.Default == nil {
			p.Default = d
		}
		if _, have := p.Named[d.Domain]; !have && slices.Contains(names, d.Domain) {
			p.Named[d.Domain] = d
		}
	}
	return p
}

// domain returns the domain in which a filter counts; nil if the proxy has none
// for it.
func (p Proxy) domain(f *model.RateLimitFilter) *Domain {
	if f.Domain == "" {
		return p.Default
	}
	return p.Named[f.Domain]
}
