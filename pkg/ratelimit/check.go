package ratelimit

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/stats"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit/limits"
)

// Load has the upstream's loader read one domain. The loader panics at what it
// refuses; here that is an error in its own words. Its lookups get their
// statistics from manager; see the loader for which calls it makes when.
func Load(c *rlsconf.RateLimitConfig, manager stats.Manager) (loaded config.RateLimitConfig, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	one := config.RateLimitConfigToLoad{Name: c.GetName(), ConfigYaml: config.ConfigXdsProtoToYaml(c)}
	return config.NewRateLimitConfigImpl([]config.RateLimitConfigToLoad{one}, manager, false), nil
}

// Check reports as a *model.Error of kind Unworkable what an engine would refuse
// of d, and where: a configuration that it refuses keeps those of all others
// from being taken. nil means that every engine takes it.
func Check(d *limits.Domain) error {
	// The user's own name of the domain, so that the words are the user's too.
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

// locate finds the first rule with which the list is refused, and in that rule the
// first of its own rules.
func locate(domain string, rules []model.RateLimitRule) string {
	i := sort.Search(len(rules), func(i int) bool { return load(domain, rules[:i+1]) != nil })
	if i == len(rules) {
		return ".descriptors"
	}
	at := fmt.Sprintf(".descriptors[%d]", i)
	alone := append([]model.RateLimitRule{}, rules[:i+1]...)
	alone[i].Descriptors = nil
	if load(domain, alone) != nil {
		return at // the fault is in the rule, not in what is nested in it
	}
	return at + locate(domain, rules[i].Descriptors)
}

// noStats serves a configuration that is only loaded: the loader makes
// statistics, and nothing of it looks up.
type noStats struct{ stats.Manager }

func (noStats) NewStats(key string) stats.RateLimitStats { return stats.RateLimitStats{Key: key} }
