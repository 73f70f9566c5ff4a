package ratelimit

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/stats"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Load loads one domain with the upstream's loader. The loader panics if it
// refuses the domain; Load turns that into an error with the same text. Lookups
// use statistics from manager; see the loader for which calls it makes when.
func Load(c *rlsconf.RateLimitConfig, manager stats.Manager) (loaded config.RateLimitConfig, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	one := config.RateLimitConfigToLoad{Name: c.GetName(), ConfigYaml: config.ConfigXdsProtoToYaml(c)}
	return config.NewRateLimitConfigImpl([]config.RateLimitConfigToLoad{one}, manager, false), nil
}

// Check returns a *model.Error of kind Unworkable with what an engine would refuse
// in d, and where. An engine that refuses one configuration accepts no others
// either. Nil means that every engine accepts it.
func Check(d *limits.Domain) error {
	// Use the user's own name of the domain, so that the error has it too.
	why := load(d.Domain, d.Descriptors)
	if why == nil {
		return nil
	}
	field := "config.domain"
	if d.Domain != "" {
		field = "config" + locate(d.Domain, d.Descriptors)
	}
	e := &model.Error{
		Kind: model.Unworkable, Message: "the rate-limit engine refuses this configuration",
		Fields: []model.FieldError{{Field: field, Message: why.Error()}},
	}
	if strings.HasPrefix(why.Error(), "duplicate descriptor") {
		e.Hint = "a key and its value are joined with _, so that key a_b is the same as key a with value b"
	}
	return e
}

func load(domain string, rules []model.RateLimitRule) error {
	if _, err := Load(buildConfig("", domain, rules), noStats{}); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), ": "))
	}
	return nil
}

// locate finds the first rule with which the list is refused, and then the first
// refused rule nested in it.
func locate(domain string, rules []model.RateLimitRule) string {
	i := sort.Search(len(rules), func(i int) bool { return load(domain, rules[:i+1]) != nil })
	if i == len(rules) {
		return ".descriptors"
	}
	at := fmt.Sprintf(".descriptors[%d]", i)
	alone := append([]model.RateLimitRule{}, rules[:i+1]...)
	alone[i].Descriptors = nil
	if load(domain, alone) != nil {
		return at // the fault is in the rule, not in its nested rules
	}
	return at + locate(domain, rules[i].Descriptors)
}

// noStats is for a configuration that is only loaded: the loader creates
// statistics, and no lookup uses them.
type noStats struct{ stats.Manager }

func (noStats) NewStats(key string) stats.RateLimitStats { return stats.RateLimitStats{Key: key} }
