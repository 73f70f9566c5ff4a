package upstreams

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

const (
	// ownWindow is how long failures in the own Envoy are reported.
	ownWindow = 30 * time.Second
	// maxInspected bounds the clusters of one request to it, maxSeen those that are
	// remembered.
	maxInspected = 100
	maxSeen      = 1000
)

// OwnEnvoy is the Envoy that this process starts; nil means that there is none. No other Envoy can be asked why
// upstreams fail.
type OwnEnvoy struct {
	// Parent is the name by which the Envoy identifies itself as this one.
	Parent string
	get    Get

	mu sync.Mutex // held while Envoy is asked
	// seen are the clusters as they were at the last request to Envoy.
	seen map[string]*seenCluster
	// dropped reports whether a cluster was forgotten: the counts of a cluster that is seen
	// for the first time may then be old.
	dropped bool
}

// seenCluster is a cluster and what has happened there lately.
type seenCluster struct {
	*cluster
	at      time.Time
	tallies map[ownEndpoint]*health.Tally
	// check are the health checks that failed lately.
	check health.Own
}

type ownEndpoint struct {
	address string
	port    uint32
}

// NewOwnEnvoy returns an Envoy that may start later.
func NewOwnEnvoy(get Get) *OwnEnvoy {
	return &OwnEnvoy{Parent: rand.Text(), get: get, seen: map[string]*seenCluster{}}
}

// is reports whether a connected Envoy is the own one.
func (o *OwnEnvoy) is(have server.Have) bool { return o != nil && have.Parent == o.Parent }

// Failing inspects clusters that the Envoy has reported to fail, while it still shows why.
func (o *OwnEnvoy) Failing(ctx context.Context, parent string, clusters []string) {
	if o != nil && parent == o.Parent {
		o.inspect(ctx, clusters, func(string, *seenCluster) {})
	}
}

// inspect requests clusters from the Envoy and calls f for each that it has.
func (o *OwnEnvoy) inspect(ctx context.Context, names []string, f func(name string, c *seenCluster)) {
	if len(names) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	list, err := o.get.clusters(ctx, names[:min(maxInspected, len(names))])
	if err != nil {
		return // the health is then unknown, and reported so
	}
	now := time.Now()
	for name, c := range list {
		old := o.seen[name]
		if old == nil && len(o.seen) >= maxSeen {
			for any := range o.seen {
				delete(o.seen, any)
				break
			}
			o.dropped = true
		}
		next := &seenCluster{cluster: c, at: now, tallies: map[ownEndpoint]*health.Tally{}}
		next.count(old, old != nil || !o.dropped)
		o.seen[name] = next
		f(name, next)
	}
}

// failingClusters lists the clusters with endpoints that are marked unhealthy or with failed
// requests.
func (o *OwnEnvoy) failingClusters(ctx context.Context) []string {
	list, err := o.get.failingClusters(ctx)
	if err != nil {
		list = nil // what was seen is still true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for name, c := range o.seen {
		for _, t := range c.tallies {
			if t.Bad() > 0 && t.Fresh(now, ownWindow) {
				list = append(list, name)
				break
			}
		}
	}
	return list
}

// count adds what has happened since old. If known is false, earlier counts may be of any
// age.
func (c *seenCluster) count(old *seenCluster, known bool) {
	before := &seenCluster{cluster: &cluster{}}
	if old != nil {
		before = old
		c.check = old.check
	}
	if !known {
		before = c
	}
	causes := health.Causes{
		ConnectTimeout: increase(c.ConnectTimeout, before.ConnectTimeout),
		TLS:            increase(c.TLS, before.TLS), Certificate: increase(c.Certificate, before.Certificate),
		Protocol: increase(c.Protocol, before.Protocol), Closed: increase(c.Closed, before.Closed),
	}
	otherwise := causes.ConnectTimeout + causes.TLS + causes.Certificate
	causes.Refused = subtract(increase(c.ConnectFail, before.ConnectFail), otherwise)
	if failures := increase(c.CheckFailures, before.CheckFailures); failures > 0 {
		c.check = health.Own{
			CheckFailures: failures, CheckBroken: increase(c.CheckBroken, before.CheckBroken),
			CheckTLS: causes.TLS + causes.Certificate,
		}
	}
	for _, e := range c.endpoints {
		at := ownEndpoint{e.Address, e.Port}
		was := endpoint{}
		for _, b := range before.endpoints {
			// Lower counts than before belong to a new cluster of the same name.
			if b.Address == e.Address && b.Port == e.Port && b.Sent <= e.Sent && b.Success <= e.Success && b.Error <= e.Error {
				was = b
			}
		}
		tally := &health.Tally{}
		if b := before.tallies[at]; b != nil && known && was != (endpoint{}) {
			*tally = *b // another goroutine may still read that one
		}
		counts := countsOf(e, was, causes)
		if counts.Bad() > 0 || c.at.Sub(before.at) <= ownWindow {
			tally.Add(c.at, ownWindow, counts)
		}
		c.tallies[at] = tally
	}
}

// countsOf returns the counts of requests to an endpoint since its state was.
func countsOf(e, was endpoint, all health.Causes) health.Counts {
	done := subtract(e.Sent, e.Active) - min(subtract(e.Sent, e.Active), subtract(was.Sent, was.Active))
	c := health.Counts{Succeeded: e.Success - was.Success}
	bad := e.Error - was.Error
	c.Failed = min(bad, subtract(done, c.Succeeded))
	c.Unconnected = bad - c.Failed
	c.Untold = subtract(done, c.Succeeded+c.Failed)
	if bad == 0 { // a lean proxy counts no errors
		c.Unconnected = increase(e.ConnectFail, was.ConnectFail)
	}
	if c.Unconnected > 0 {
		c.Causes = health.Causes{
			Refused: all.Refused, ConnectTimeout: all.ConnectTimeout, TLS: all.TLS, Certificate: all.Certificate,
		}
	}
	if c.Failed > 0 {
		c.Causes.Timeout = subtract(e.Timeout, was.Timeout)
		c.Causes.Protocol, c.Causes.Closed = min(all.Protocol, c.Failed), min(all.Closed, c.Failed)
		c.Causes.ServerError = subtract(c.Failed, c.Causes.Timeout+c.Causes.Protocol+c.Causes.Closed)
	}
	return c
}

// increase returns how much a counter grew; one that is lower than before was reset.
func increase(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// subtract returns a-b, or 0 if that is negative.
func subtract(a, b uint64) uint64 { return a - min(a, b) }

// ownHealth returns what the Envoy reports of an upstream, and what has happened there
// lately. An upstream that is a host name has several addresses.
func (c *seenCluster) ownHealth(address string, port uint32, dns bool) (health.Own, health.Tally) {
	said := c.check
	tally := health.Tally{}
	total, failed, pending, ejected := 0, 0, 0, 0
	for _, e := range c.endpoints {
		// Envoy has the name without a trailing dot, as certificates do.
		if e.Port != port || e.Address != address && (!dns || !strings.EqualFold(e.Name, strings.TrimSuffix(address, "."))) {
			continue
		}
		total++
		switch {
		case e.Pending:
			pending++
		case e.FailedCheck:
			failed++
			said.CheckTimeout = said.CheckTimeout || e.CheckTimeout
		case e.Ejected:
			ejected++
		}
		t := c.tallies[ownEndpoint{e.Address, e.Port}]
		tally.Counts = health.Sum(tally.Counts, t.Counts)
		if t.Last.After(tally.Last) {
			tally.Since, tally.Last = t.Since, t.Last
		}
	}
	said.Addresses, said.Ill = total, failed+ejected
	// If a name has several addresses, a healthy one receives the requests.
	said.Resolved = total > 0
	said.Failed = total > 0 && failed == total
	said.Pending = total > 0 && pending == total
	said.Ejected = total > 0 && !said.Failed && failed+ejected == total
	return said, tally
}
