package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/standalone"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// ownEnvoy is the Envoy that this process has started: no other one can be
// asked how the upstreams are.
type ownEnvoy struct {
	// parent is the name by which the Envoy tells that it is this one.
	parent string
	// name is its proxy.
	name  string
	envoy atomic.Pointer[standalone.Envoy]
}

func newOwnEnvoy(proxy string) *ownEnvoy { return &ownEnvoy{parent: rand.Text(), name: proxy} }

// proxy is the name of its proxy; empty where there is none.
func (c *ownEnvoy) proxy() string {
	if c == nil {
		return ""
	}
	return c.name
}

// is reports whether a connected Envoy is that one. A nil one is none.
func (c *ownEnvoy) is(have server.Have) bool { return c != nil && have.Parent == c.parent }

// addHealth says how Envoy sees the upstreams of an answer. What it does not
// say stays unknown.
func (c *ownEnvoy) addHealth(ctx context.Context, f *explain.Forward) {
	envoy := c.envoy.Load()
	if envoy == nil || f == nil {
		return
	}
	var names []string
	for _, cluster := range f.Clusters {
		names = append(names, cluster.Name)
	}
	endpoints, err := envoy.Endpoints(ctx, names)
	if err != nil {
		return
	}
	for i := range f.Clusters {
		cluster := &f.Clusters[i]
		for k := range cluster.Endpoints {
			cluster.Endpoints[k].Health = health(cluster.Name, cluster.Endpoints[k], endpoints)
		}
	}
}

// health sums up the addresses of an upstream, which are several for a DNS
// name; empty where Envoy knows none.
func health(cluster string, upstream explain.Endpoint, endpoints []standalone.Endpoint) string {
	var states []string
	healthy := 0
	for _, e := range endpoints {
		if e.Cluster == cluster && (e.Address == upstream.Address || e.Name == upstream.Address) && e.Port == upstream.Port {
			states = append(states, e.Health)
			if e.Health == standalone.Healthy {
				healthy++
			}
		}
	}
	if len(states) > 1 && len(slices.Compact(slices.Sorted(slices.Values(states)))) > 1 {
		return fmt.Sprintf("%d of %d healthy", healthy, len(states))
	}
	if len(states) == 0 {
		return ""
	}
	return states[0]
}
