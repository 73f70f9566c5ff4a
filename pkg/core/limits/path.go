package limits

import (
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// PathJoin is between the levels of a limit's path, such as "generic_key=shop >
// remote_address".
const PathJoin = " > "

// PathStep is one level of a path: the key, and the value unless it is empty.
func PathStep(key, value string) string {
	if value == "" {
		return key
	}
	return key + "=" + value
}

// ByPath returns the limits among rules by path.
func ByPath(rules []model.RateLimitRule) map[string]*model.RateLimit {
	limits := map[string]*model.RateLimit{}
	eachLimit(nil, rules, func(path []part, l *model.RateLimit) { limits[formatPath(path)] = l })
	return limits
}

// eachLimit calls do with each limit among rules, with within before the rules
// on its path.
func eachLimit(within []part, rules []model.RateLimitRule, do func(path []part, l *model.RateLimit)) {
	for _, r := range rules {
		path := append(slices.Clip(within), part{key: r.Key, value: r.Value})
		if r.RateLimit != nil {
			do(path, r.RateLimit)
		}
		eachLimit(path, r.Descriptors, do)
	}
}

func formatPath(parts []part) string {
	steps := make([]string, len(parts))
	for i, p := range parts {
		steps[i] = PathStep(p.key, p.value)
	}
	return strings.Join(steps, PathJoin)
}
