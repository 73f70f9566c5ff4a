package ratelimit

import (
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
)

// Paths returns the readable path of each limit of a domain, such as
// "generic_key=shop > remote_address", by the name that the upstream's loader
// gives the limit: key and value joined with "_", levels with ".".
func Paths(c *rlsconf.RateLimitConfig) map[string]string {
	paths := map[string]string{}
	addPaths(paths, c.GetDomain(), "", c.GetDescriptors())
	return paths
}

func addPaths(to map[string]string, name, path string, descriptors []*rlsconf.RateLimitDescriptor) {
	for _, d := range descriptors {
		name, path := name+"."+d.GetKey(), path+limits.PathStep(d.GetKey(), d.GetValue())
		if d.GetValue() != "" {
			name += "_" + d.GetValue()
		}
		if d.GetRateLimit() != nil {
			to[name] = path
		}
		addPaths(to, name, path+limits.PathJoin, d.GetDescriptors())
	}
}
