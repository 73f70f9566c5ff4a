package translate

import (
	"errors"
	"net/http"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	statsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stats/v3"
	transformv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/actions/transform_stat/v3"
	statinputv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/stats/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// This file is about the metrics of services (ADR 0126). Each is a log whose lines are statistics. Their labels are
// names of the configuration and words of this program: nothing that a client or an upstream says.

const (
	// statsPrefix begins the names of the statistics; the bootstrap lets them pass.
	statsPrefix = "gatehouse"
	// countedAs is the namespace of a host's metadata that has the name of the service. It is not seam.Metadata, of which
	// a message has one value.
	countedAs = "gatehouse.metrics"
)

// CountedHost has what the metrics of a proxy read from a host. Hosts of proxies without metrics do not have it, since
// it costs each of them some 800 bytes in Envoy.
func CountedHost(service string) *routev3.VirtualHost {
	return &routev3.VirtualHost{Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		countedAs: {Fields: map[string]*structpb.Value{"service": structpb.NewStringValue(service)}},
	}}}
}

func tag(name, format string) *statsv3.Config_Tag {
	return &statsv3.Config_Tag{Name: name, ValueFormat: format}
}

// byService, byRoute and byStatus are labels. A request that no route is for has no route, and one that no host is for
// no service. The first digit of the status is its class.
func byService() *statsv3.Config_Tag {
	return tag("service", "%METADATA(VIRTUAL_HOST:"+countedAs+":service)%")
}
func byRoute() *statsv3.Config_Tag { return tag("route", "%ROUTE_NAME%") }
func byClass() *statsv3.Config_Tag { return tag("status", "%RESP(:STATUS):1%xx") }

// metricsLogs count requests.
func metricsLogs(m *ir.Metrics) ([]*accesslogv3.AccessLog, error) {
	if m == nil {
		return nil, nil
	}
	all, err := statistics()
	wanted := map[string]bool{"": true, "routes": m.Routes, "bytes": m.Bytes, "retries": m.Retries}
	var list []*accesslogv3.AccessLog
	for _, s := range all {
		if wanted[s.option] {
			log, wrong := s.translate(m.MaxSeries)
			list, err = append(list, log), errors.Join(err, wrong)
		}
	}
	return list, err
}

type tags = []*statsv3.Config_Tag

// statistic is one metric.
type statistic struct {
	name, help string
	// option is the field of a global config that wants it; empty means that all do.
	option string
	tags   tags
	// duration makes it a histogram of durations. A counter adds a value, or else 1.
	duration bool
	value    string
	// of are the requests that count; nil means all.
	of *accesslogv3.AccessLogFilter
}

// statistics are all metrics. docs/metrics.md has what they say of themselves.
func statistics() ([]statistic, error) {
	reason, err := byReason()
	again, err2 := seam.CEL("upstream.request_attempt_count > 1")
	return []statistic{
		{
			name: "service_duration_milliseconds", duration: true, tags: tags{byService(), byClass()},
			help: "Requests to a service, by the class of their status (`2xx`), with the time from the first byte of the request " +
				"to the last one of the response. `_count` is the number of requests.",
		},
		{
			name: "route_duration_milliseconds", duration: true, tags: tags{byService(), byRoute(), byClass()}, option: "routes",
			help: "The same by route.",
		},
		{
			name: "refusals", tags: tags{byService(), reason},
			// Most requests pay only for this comparison of their status.
			of:   seam.StatusAtLeast(http.StatusBadRequest),
			help: "Responses of the gateway itself with 400 or more, by [reason](#reasons).",
		},
		{
			name: "request_bytes", value: "%BYTES_RECEIVED%", tags: tags{byService()}, option: "bytes",
			help: "Bytes of the bodies of requests.",
		},
		{
			name: "response_bytes", value: "%BYTES_SENT%", tags: tags{byService()}, option: "bytes",
			help: "Bytes of the bodies of responses.",
		},
		{
			name: "retried_requests", tags: tags{byService()}, option: "retries", of: again,
			help: "Requests that were sent to upstreams more than once.",
		},
	}, errors.Join(err, err2)
}

// translate returns the log. Each has a scope of its own, so that no metric takes the room of another one. Listeners
// have equal series together, although each has its own scopes: one that is shared (sharing_name) ends Envoy 1.39.3
// with a segmentation fault after it has validated a configuration. Series that are not used any more go
// (stats_eviction_interval of the bootstrap).
func (s statistic) translate(series int) (*accesslogv3.AccessLog, error) {
	most := wrapperspb.UInt32(uint32(series)) //nolint:gosec // at most 20,000
	config := &statsv3.Config{StatsScope: &typev3.Scope{
		Prefix: statsPrefix, EnableEviction: true, MaxCounters: most, MaxHistograms: most,
	}}
	stat := &statsv3.Config_Stat{Name: s.name, Tags: s.tags}
	if s.duration {
		config.Histograms = []*statsv3.Config_Histogram{{Stat: stat, Unit: statsv3.Config_Histogram_Milliseconds, ValueFormat: "%DURATION%"}}
	} else {
		one := &statsv3.Config_Counter{Stat: stat, ValueFormat: s.value}
		if s.value == "" {
			one.ValueFixed = wrapperspb.UInt64(1)
		}
		config.Counters = []*statsv3.Config_Counter{one}
	}
	packed, err := pack(config)
	return &accesslogv3.AccessLog{
		Name: "envoy.access_loggers.stats", Filter: s.of, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: packed},
	}, err
}

// byReason is a label: the type of the filter that refused, or a word. What the upstream answered is no refusal.
func byReason() (*statsv3.Config_Tag, error) {
	var m matchers
	then := func(t *transformv3.TransformStat) *xdsmatcherv3.Matcher_OnMatch {
		return &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{Action: m.extension("transform", t)}}
	}
	named := func(reason string) *xdsmatcherv3.Matcher_OnMatch {
		return then(&transformv3.TransformStat{UpdateTag: &transformv3.TransformStat_UpdateTag{NewTagValue: reason}})
	}
	begins := map[string]*xdsmatcherv3.Matcher_OnMatch{
		"via_upstream": then(&transformv3.TransformStat{DropStat: &transformv3.TransformStat_DropStat{}}),
	}
	for _, f := range rows {
		for details, reason := range f.Refuses {
			begins[details] = named(reason)
		}
	}
	out := tag("reason", seam.RefusalDetails)
	out.Rules = &xdsmatcherv3.Matcher{
		OnNoMatch: named("other"),
		MatcherType: &xdsmatcherv3.Matcher_MatcherTree_{MatcherTree: &xdsmatcherv3.Matcher_MatcherTree{
			Input: m.extension("value", &statinputv3.StatTagValueInput{}),
			TreeType: &xdsmatcherv3.Matcher_MatcherTree_PrefixMatchMap{
				PrefixMatchMap: &xdsmatcherv3.Matcher_MatcherTree_MatchMap{Map: begins},
			},
		}},
	}
	return out, m.err
}

// limited is the reason for rate limits: their type.
const limited = "route_filter_ratelimit"

// refusedHosts are the refusals of the filter of hosts.
func refusedHosts() map[string]string {
	const reason = "invalid_request"
	return map[string]string{
		seam.Denied(invalidHost): reason, seam.Denied(dotSegment): reason, seam.Denied(misdirected): "misdirected",
	}
}

// unanswered are the responses of the router and of the connection manager to requests that no upstream answered.
func unanswered() map[string]string {
	const timeout = "upstream_timeout"
	return map[string]string{
		"route_not_found":     "no_route",
		"direct_response":     "direct_response", // fixed answers, and what cannot work as written
		"no_healthy_upstream": "no_healthy_upstream",
		"cluster_not_found":   "no_healthy_upstream",
		"upstream_":           "upstream_failed",
		"upstream_reset_before_response_started{overflow": "upstream_overflow",
		"upstream_per_try_timeout":                        timeout,
		"upstream_max_stream_duration_reached":            timeout,
		"response_timeout":                                timeout,
		"max_duration_timeout":                            timeout,
	}
}
