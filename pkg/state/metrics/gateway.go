package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// gateway reads a status registry at each collection.
type gateway struct {
	about *status.Registry
	descriptions
}

type descriptions struct {
	revision, publishSeconds, events, acks, nacks *prometheus.Desc
	envoys, applied, waiting, refused, conditions *prometheus.Desc
}

func newDescriptions() descriptions {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gatehouse_"+name, help, labels, nil)
	}
	return descriptions{
		revision: desc("revision", "Revision of the configuration that was published last."),
		publishSeconds: desc("publish_seconds_total", "Time spent on building what was published; "+
			`gatehouse_events_total{event="publish"} is the number of builds.`),
		events: desc("events_total", "Events of GET /events, by name: changes, publishes, connections and disconnections "+
			"of Envoys, and others. See docs/events.md.", "event"),
		acks:  desc("acks_total", "Responses that Envoys acknowledged, by type of resources.", "type"),
		nacks: desc("nacks_total", "Responses that Envoys refused, by type of resources.", "type"),
		envoys: desc("envoys", "Envoys connected to this process, not to other replicas; a proxy without Envoys has no series.",
			"proxy"),
		applied: desc("applied_revision", "Oldest revision that a connected Envoy of the proxy has in full; "+
			"it stays when later ones change nothing for the proxy.", "proxy"),
		waiting: desc("waiting_hosts", "Hosts whose newest version is not ready yet in some Envoy of the proxy.", "proxy"),
		refused: desc("refused_resources", "Resources that some Envoy of the proxy refused and does not get again.",
			"proxy"),
		conditions: desc("conditions", "Objects that are not live as written, by the code of the reason.", "code"),
	}
}

// Describe implements prometheus.Collector.
func (g *gateway) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		g.revision, g.publishSeconds, g.events, g.acks, g.nacks, g.envoys, g.applied, g.waiting, g.refused, g.conditions,
	} {
		to <- d
	}
}

// perProxy sums up the Envoys of one proxy.
type perProxy struct {
	envoys, applied  int64
	waiting, refused map[string]bool
}

// Collect implements prometheus.Collector.
func (g *gateway) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		m, err := prometheus.NewConstMetric(d, kind, value, labels...)
		if err != nil { // the value of a label is not UTF-8
			m = prometheus.NewInvalidMetric(d, err)
		}
		to <- m
	}
	counts := g.about.Feed().Counts()
	send(g.revision, prometheus.GaugeValue, float64(counts.Revision))
	send(g.publishSeconds, prometheus.CounterValue, counts.PublishSeconds)
	for d, byLabel := range map[*prometheus.Desc]map[string]int64{
		g.events: counts.Events, g.acks: counts.Acks, g.nacks: counts.Nacks,
	} {
		for label, n := range byLabel {
			send(d, prometheus.CounterValue, float64(n), label)
		}
	}
	for name, p := range byProxy(g.about.Envoys()) {
		send(g.envoys, prometheus.GaugeValue, float64(p.envoys), name)
		send(g.applied, prometheus.GaugeValue, float64(p.applied), name)
		send(g.waiting, prometheus.GaugeValue, float64(len(p.waiting)), name)
		send(g.refused, prometheus.GaugeValue, float64(len(p.refused)), name)
	}
	codes := map[string]int64{}
	for _, c := range g.about.Conditions() {
		codes[c.Code]++
	}
	for code, n := range codes {
		send(g.conditions, prometheus.GaugeValue, float64(n), code)
	}
}

func byProxy(envoys []status.Envoy) map[string]*perProxy {
	proxies := map[string]*perProxy{}
	for _, e := range envoys {
		p := proxies[e.Proxy]
		if p == nil {
			p = &perProxy{applied: e.Applied, waiting: map[string]bool{}, refused: map[string]bool{}}
			proxies[e.Proxy] = p
		}
		p.envoys++
		p.applied = min(p.applied, e.Applied)
		for _, w := range e.Waiting {
			p.waiting[w.Host] = true
		}
		for _, r := range e.Refused {
			p.refused[r.TypeURL+" "+r.Resource] = true
		}
	}
	return proxies
}
