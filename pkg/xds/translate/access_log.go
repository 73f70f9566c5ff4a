package translate

import (
	"cmp"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	otelv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/open_telemetry/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// accessLogs write a line for each request to Envoy's stdout or to a collector.
func accessLogs(l ir.Listener) ([]*accesslogv3.AccessLog, error) {
	logs := l.AccessLogs
	if l.AccessLog {
		logs = append(slices.Clone(logs), ir.AccessLog{Always: true})
	}
	var list []*accesslogv3.AccessLog
	for _, log := range logs {
		some, err := accessLog(l, log)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	counts, err := metricsLogs(l.Metrics)
	return append(list, counts...), err
}

// accessLog is one log. The line of a request that may be part of a login does not have the identity provider's answer,
// which may be in the details. Two loggers share the requests then.
func accessLog(l ir.Listener, log ir.AccessLog) ([]*accesslogv3.AccessLog, error) {
	formats, only := requestFormats(l), selected(log.Only)
	if log.ALS {
		return alsLog(log, formats, only)
	}
	if len(log.Line) > 0 {
		formats = textFormats(l)
	}
	if !has(log, formats, detailsField) {
		one, err := logger(log, formats, only)
		return []*accesslogv3.AccessLog{one}, err
	}
	ofLogin := maps.Clone(formats)
	ofLogin[detailsField] = seam.DetailWords
	is401 := seam.AllOf(seam.StatusAtLeast(http.StatusUnauthorized), seam.StatusAtMost(http.StatusUnauthorized))
	all, err := logger(log, formats, only, noLogin()...)
	if err != nil {
		return nil, err
	}
	some, err := logger(log, ofLogin, only, seam.AnyOf(is401, mentionsState(false)))
	return []*accesslogv3.AccessLog{all, some}, err
}

// noLogin are the conditions of a request that is certainly no part of a login. They use no CEL, because they run for
// every request.
func noLogin() []*accesslogv3.AccessLogFilter {
	no401 := seam.AnyOf(seam.StatusAtMost(http.StatusBadRequest), seam.StatusAtLeast(http.StatusPaymentRequired))
	return []*accesslogv3.AccessLogFilter{no401, mentionsState(true)}
}

// detailsField has Envoy's details of a response, the only field that may have what an identity provider answered.
const detailsField = "response_code_details"

// selected returns the condition of the requests that are logged; none means all.
func selected(o *ir.LogOnly) []*accesslogv3.AccessLogFilter {
	if o == nil {
		return nil
	}
	var which []*accesslogv3.AccessLogFilter
	if o.StatusFrom > 0 {
		which = append(which, seam.StatusAtLeast(uint32(o.StatusFrom)), seam.StatusAtMost(0)) //nolint:gosec // at most 599
	}
	if o.SlowerThan > 0 {
		which = append(which, &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_DurationFilter{
			DurationFilter: &accesslogv3.DurationFilter{Comparison: &accesslogv3.ComparisonFilter{
				Op: accesslogv3.ComparisonFilter_GE, Value: &corev3.RuntimeUInt32{
					DefaultValue: uint32(o.SlowerThan.Milliseconds()), //nolint:gosec // at most a day
					RuntimeKey:   "gatehouse.log_duration",            // nothing sets it
				},
			}},
		}})
	}
	if o.Millionths > 0 {
		which = append(which, &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_RuntimeFilter{
			RuntimeFilter: &accesslogv3.RuntimeFilter{
				RuntimeKey: "gatehouse.log_share", // nothing sets it
				PercentSampled: &typev3.FractionalPercent{
					Numerator: o.Millionths, Denominator: typev3.FractionalPercent_MILLION,
				},
				UseIndependentRandomness: true, // clients may choose the request ID
			},
		}})
	}
	if len(which) == 1 {
		return which
	}
	return []*accesslogv3.AccessLogFilter{seam.AnyOf(which...)}
}

// logger writes lines for the requests that meet all filters, and are written to the log.
func logger(
	log ir.AccessLog, formats map[string]string, only []*accesslogv3.AccessLogFilter, more ...*accesslogv3.AccessLogFilter,
) (*accesslogv3.AccessLog, error) {
	out := &accesslogv3.AccessLog{Name: "envoy.access_loggers.stdout"}
	filters := slices.Concat(only, more)
	if !log.Always {
		in, err := seam.InLog(log.Name, log.AttachedOnly)
		if err != nil {
			return nil, err
		}
		at := len(filters)
		if log.AttachedOnly { // for few requests, mostly
			at = 0
		}
		filters = slices.Insert(filters, at, in)
	}
	switch len(filters) {
	case 0:
	case 1:
		out.Filter = filters[0]
	default:
		out.Filter = seam.AllOf(filters...)
	}
	fields := fieldsOf(log, formats)
	format := seam.JSONFormat(fields)
	if len(log.Line) > 0 {
		format = seam.TextFormat(lineOf(log, fields))
	}
	var sink seam.Proto = &streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: format}}
	if log.Dir != "" {
		out.Name, sink = "envoy.access_loggers.file", &filev3.FileAccessLog{
			Path: path.Join(log.Dir, log.Name+".log"), AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: format},
		}
	}
	if log.Collector != nil {
		out.Name = "envoy.access_loggers.open_telemetry"
		body := "%REQ(:METHOD):32% %REQ(:AUTHORITY):256%%PATH(NQ):1024% %RESPONSE_CODE%"
		if formats["method"] == "" {
			body = "connection of " + formats["service"]
		}
		sink = toCollector(log, fields, body)
	}
	if log.ALS {
		out.Name, sink = toALS(log, formats)
	}
	config, err := pack(sink)
	out.ConfigType = &accesslogv3.AccessLog_TypedConfig{TypedConfig: config}
	return out, err
}

// toCollector sends lines to a collector: their fields are attributes.
func toCollector(log ir.AccessLog, fields map[string]string, body string) *otelv3.OpenTelemetryAccessLogConfig {
	text := func(key, value string) *commonv1.KeyValue {
		return &commonv1.KeyValue{Key: key, Value: &commonv1.AnyValue{
			Value: &commonv1.AnyValue_StringValue{StringValue: value},
		}}
	}
	out := &otelv3.OpenTelemetryAccessLogConfig{
		LogName: "gatehouse", DisableBuiltinLabels: true,
		ResourceAttributes: &commonv1.KeyValueList{Values: []*commonv1.KeyValue{text("service.name", log.ServiceName)}},
		Body:               text("", body).GetValue(),
		Attributes:         &commonv1.KeyValueList{},
	}
	out.GrpcService, out.HttpService = otlp(log.Collector)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		out.Attributes.Values = append(out.Attributes.Values, text(name, fields[name]))
	}
	return out
}

// fieldsOf are the fields of a line of one log.
func fieldsOf(log ir.AccessLog, formats map[string]string) map[string]string {
	fields := map[string]string{}
	for name, format := range formats {
		if !slices.Contains(log.Omit, name) {
			fields[cmp.Or(log.Rename[name], name)] = format
		}
	}
	for _, f := range log.Fields {
		switch {
		case f.Header != "":
			fields[f.Name] = "%REQ(" + f.Header + "):256%"
		case f.ResponseHeader != "":
			fields[f.Name] = "%RESP(" + f.ResponseHeader + "):256%"
		case f.Claim != "":
			fields[f.Name] = seam.ClaimFormat(f.Claim)
			if len(log.Line) > 0 {
				fields[f.Name] = seam.ClaimInLine(f.Claim)
			}
		case f.TLV != "":
			fields[f.Name] = tlvFormat(f.TLV)
		case f.Consumer != "":
			fields[f.Name] = seam.ConsumerFormat(f.Consumer)
		default:
			fields[f.Name] = literal(f.Value)
		}
	}
	return fields
}

// has reports whether lines of a log have a field.
func has(log ir.AccessLog, formats map[string]string, field string) bool {
	if len(log.Line) > 0 {
		return slices.Contains(log.Line, ir.LogPart{Field: field})
	}
	return formats[field] != "" && !slices.Contains(log.Omit, field)
}

// lineOf is the format of a line of text. A proxy may have no such field, as a plain listener has none of TLS.
func lineOf(log ir.AccessLog, fields map[string]string) (line string) {
	for _, p := range log.Line {
		if p.Field == "" {
			line += literal(p.Text)
		} else {
			line += cmp.Or(fields[p.Field], "-")
		}
	}
	return line
}

func literal(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// mentionsState matches requests with which an identity provider sends browsers back (RFC 6749 section 4.1.2). If
// not is true, it matches all others.
func mentionsState(not bool) *accesslogv3.AccessLogFilter {
	state := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Contains{Contains: "state="}}
	return seam.MatchesHeader(&routev3.HeaderMatcher{
		Name: ":path", InvertMatch: not, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: state},
	})
}

// requestFormats are the fields of a line of the access log. What a client chooses, or an ext_proc server (the details),
// is cut, and the path has no query, where tokens and other secrets may be. This uses CEL only where no other operator
// can do it, because it runs for every request.
func requestFormats(l ir.Listener) map[string]string {
	formats := map[string]string{
		"start_time":                       "%START_TIME%",
		"method":                           "%REQ(:METHOD):32%",
		"path":                             "%PATH(NQ):1024%",
		"protocol":                         "%PROTOCOL%",
		"authority":                        "%REQ(:AUTHORITY):256%",
		"user_agent":                       "%REQ(USER-AGENT):256%",
		"request_id":                       "%REQ(X-REQUEST-ID):64%",
		"response_code":                    "%RESPONSE_CODE%",
		"response_code_details":            seam.FirstOf(256, seam.Command{Name: "RESPONSE_CODE_DETAILS", Parameter: "ALLOW_WHITESPACES"}),
		"response_flags":                   "%RESPONSE_FLAGS%",
		"bytes_received":                   "%BYTES_RECEIVED%",
		"bytes_sent":                       "%BYTES_SENT%",
		"duration_ms":                      "%DURATION%",
		"upstream_duration_ms":             "%COMMON_DURATION(US_TX_BEG:US_RX_BEG:ms)%",
		"service":                          "%CEL(xds.virtual_host_name)%",
		"route":                            "%ROUTE_NAME%",
		"upstream_cluster":                 "%UPSTREAM_CLUSTER_RAW%",
		"upstream_host":                    "%UPSTREAM_HOST%",
		"upstream_transport_failure":       "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
		"downstream_remote_address":        "%DOWNSTREAM_REMOTE_ADDRESS%",
		"downstream_direct_remote_address": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%",
	}
	for _, f := range rows {
		if f.LogFields != nil {
			maps.Copy(formats, f.LogFields())
		}
	}
	if l.TLS != nil {
		formats["tls_version"] = "%DOWNSTREAM_TLS_VERSION%"
		formats["sni"] = "%REQUESTED_SERVER_NAME%"
		formats["downstream_peer_subject"] = "%CEL(connection.subject_peer_certificate):256%"
	}
	if l.Tracing != nil {
		formats["trace_id"] = "%TRACE_ID%"
	}
	if l.Lean {
		maps.DeleteFunc(formats, func(name, _ string) bool { return !slices.Contains(leanFields(), name) })
	}
	return formats
}

// textFormats are the fields of a line of text. It has those that it names, in the lean profile too. What may have a
// line break is replaced: otherwise it could look like a line of its own.
func textFormats(l ir.Listener) map[string]string {
	l.Lean = false
	formats := requestFormats(l)
	formats[detailsField], formats["subject"] = seam.InLine(seam.Details), seam.ClaimInLine("sub")
	return formats
}

// leanFields are the fields of a line in the lean profile: without them, nobody finds out what happened.
func leanFields() []string {
	return []string{
		"start_time", "method", "authority", "path", "response_code", "response_flags", "duration_ms", "request_id",
		"trace_id", "upstream_host", "downstream_remote_address",
	}
}
