package compile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// maxClusterName keeps names readable in statistics and logs. A longer name ends in a hash.
const maxClusterName = 120

// Clusters groups upstreams, sorted by name, into clusters: one for each set of equal settings. Routes
// with the same upstreams share their clusters, and within a cluster, the weights of the upstreams are
// those of the endpoints. Discovered upstreams share no cluster with others. An upstream of weight 0 is
// out of rotation. A cluster without upstreams in rotation is omitted. with is what their TLS needs.
func Clusters(upstreams []*model.Upstream, with Credentials) []ir.WeightedCluster {
	var order []settings
	groups := map[settings][]*model.Upstream{}
	for _, u := range upstreams {
		s := settingsOf(u)
		if groups[s] == nil {
			order = append(order, s)
		}
		groups[s] = append(groups[s], u)
	}
	var list []ir.WeightedCluster
	for _, s := range order {
		cluster := buildCluster(s, groups[s], with)
		share := 0
		for _, u := range groups[s] {
			share += u.Weight
		}
		if share > 0 {
			list = append(list, ir.WeightedCluster{Cluster: cluster, Share: share})
		}
	}
	return list
}

// settings are what all upstreams of a cluster have in common. The type is comparable. A zero health
// check or outlier means none.
type settings struct {
	discovered bool
	// alone is the name of an upstream that shares its cluster with no other; empty otherwise.
	alone              string
	strategy, protocol string
	healthCheck        ir.HealthCheck
	tls                tlsSettings
	connections        ir.Connections
	limits             ir.Limits
	outlier            ir.Outlier
	panicThreshold     int
	zoneMin            int
	slowStart          time.Duration
	dns                ir.DNS
	proxyProtocol      string
}

func settingsOf(u *model.Upstream) settings {
	s := settings{
		tls:      tlsSettingsOf(u),
		strategy: u.Strategy, protocol: u.Protocol, panicThreshold: u.PanicThresholdPercent,
		connections: ir.Connections{
			ConnectTimeout: seconds(u.ConnectTimeoutSeconds),
			IdleTimeout:    seconds(u.IdleTimeoutSeconds),
			Keepalive:      seconds(u.KeepaliveIntervalSeconds),
		},
		limits: ir.Limits{
			Connections: u.MaxConnections, Pending: u.MaxPending, Requests: u.MaxRequests, Retries: u.MaxRetries,
		},
	}
	if u.RetryBudgetPercent > 0 {
		s.limits.RetryBudget = ir.RetryBudget{Percent: u.RetryBudgetPercent, Min: u.RetryBudgetMinCount}
	}
	if s.discovered = u.IsDiscovered(); s.discovered && u.Strategy == "random" {
		s.alone = u.Name // it has many endpoints or few, and Envoy's RANDOM ignores the weights of endpoints
	}
	if u.ProxyProtocol != "none" {
		s.proxyProtocol = u.ProxyProtocol
	}
	s.zoneMin, s.slowStart = u.ZoneMinCount, seconds(u.SlowStartSeconds)
	if u.IsDNSName() && !s.discovered {
		s.dns = dnsOf(u)
		if s.dns.Logical {
			s.alone = u.Name // Envoy allows no other endpoint
		}
	}
	if u.OutlierThresholdCount > 0 {
		s.outlier = ir.Outlier{Failures: u.OutlierThresholdCount, Ejection: seconds(u.OutlierEjectionSeconds)}
	}
	if u.HCPath != "" || u.HCType == model.HCTypeTCP {
		s.healthCheck = ir.HealthCheck{
			TCP: u.HCType == model.HCTypeTCP, Path: u.HCPath, Host: u.HCHost,
			Interval:           seconds(u.HCIntervalSeconds),
			Timeout:            seconds(u.HCTimeoutSeconds),
			UnhealthyThreshold: u.HCUnhealthyThresholdCount,
			HealthyThreshold:   u.HCHealthyThresholdCount,
		}
		// Envoy aborts a health check that takes as long as a connection may be idle.
		if idle := &s.connections.IdleTimeout; *idle > 0 {
			*idle = max(*idle, s.healthCheck.Timeout+time.Second)
		}
	}
	return s
}

// dnsOf returns how the name of an upstream is resolved. The zero value is the default.
func dnsOf(u *model.Upstream) ir.DNS {
	d := ir.DNS{Logical: u.DNS == "logical", TTL: u.DNSRefreshSeconds == 0}
	if u.DNSFamily != "v4_preferred" {
		d.Family = u.DNSFamily
	}
	if u.DNSRefreshSeconds != defaultRefreshSeconds {
		d.Refresh = seconds(u.DNSRefreshSeconds)
	}
	return d
}

// defaultRefreshSeconds is Envoy's default.
const defaultRefreshSeconds = 5

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func buildCluster(s settings, upstreams []*model.Upstream, with Credentials) *ir.Cluster {
	names := make([]string, len(upstreams))
	for i, u := range upstreams {
		names[i] = u.Name
	}
	c := &ir.Cluster{
		Name: ClusterName(names), Upstreams: names, Strategy: s.strategy, Protocol: s.protocol,
		Connections: s.connections, Limits: s.limits, PanicThreshold: s.panicThreshold,
		ZoneMin: s.zoneMin, SlowStart: s.slowStart, DNS: s.dns,
		ProxyProtocol: s.proxyProtocol,
	}
	if s.healthCheck != (ir.HealthCheck{}) {
		c.HealthCheck = &s.healthCheck
	}
	c.TLS = s.tls.build(with)
	if s.outlier.Failures > 0 {
		c.Outlier = &s.outlier
	}
	c.Discovered = s.discovered
	level := levels(upstreams)
	c.Priorities = len(level) > 1
	for _, u := range upstreams {
		if u.Weight > 0 && !c.Discovered {
			c.Endpoints = append(c.Endpoints, endpointOf(u, level[u.Priority]))
		}
	}
	slices.SortStableFunc(c.Endpoints, func(a, b ir.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Zone, b.Zone))
	})
	return c
}

func endpointOf(u *model.Upstream, priority int) ir.Endpoint {
	e := ir.Endpoint{
		Address: u.IP, DNS: u.IsDNSName(), Port: u.Port, Weight: u.Weight, Upstream: u.Name, Priority: priority, Zone: u.Zone,
	}
	if path, is := u.Socket(); is {
		e.Socket, e.Port = path, 0
	}
	return e
}

// levels returns Envoy's priority of each Upstream_priority: it wants all of them from 0, without a gap. Upstreams out
// of rotation do not count.
func levels(upstreams []*model.Upstream) map[int]int {
	var used []int
	for _, u := range upstreams {
		if u.Weight > 0 {
			used = append(used, u.Priority)
		}
	}
	slices.Sort(used)
	level := map[int]int{}
	for i, p := range slices.Compact(used) {
		level[p] = i
	}
	return level
}

// splitPriorities says which upstreams have different priorities and would be in different clusters; "" if none.
// Envoy chooses a cluster by weights, before it looks at the health of what is in it.
func splitPriorities(upstreams []*model.Upstream) string {
	var first *model.Upstream
	for _, u := range upstreams {
		switch {
		case u.Weight == 0:
		case first == nil:
			first = u
		case u.Priority != first.Priority && settingsOf(u) != settingsOf(first):
			return fmt.Sprintf("has upstreams %s and %s with a different Upstream_priority, for which all other settings must be equal (%s),",
				first.Name, u.Name, difference(first, u))
		}
	}
	return ""
}

// difference says why two upstreams cannot share a cluster.
func difference(a, b *model.Upstream) string {
	fields := a.Differences(b)
	switch {
	case a.IsDiscovered() != b.IsDiscovered():
		return "one has discovered endpoints"
	case len(fields) == 0:
		return "one shares a cluster with no other: its Upstream_dns is logical, or its Upstream_strategy random"
	}
	return "they differ in " + strings.Join(fields, ", ")
}

// ClusterName joins the names of upstreams with a character that no name contains.
func ClusterName(names []string) string {
	name := strings.Join(names, "+")
	if len(name) <= maxClusterName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxClusterName-33] + "+" + hex.EncodeToString(sum[:16])
}
