package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// AccessLogConfig is an access log of a proxy. Each one that applies to a proxy is a log of its own; together they
// replace the log of the setting access-log.
// +page=accesslog.md
// +example={upstream: collector, omit: [user_agent], rename: {duration_ms: latency}, fields: [{name: tenant, header: x-tenant}],
// only: {status_from: 400, slower_than: 1s, percent: 1}}
type AccessLogConfig struct {
	// Name of the upstream that is the collector (OpenTelemetry, OTLP), over gRPC if its protocol is h2c or h2, and over
	// HTTP otherwise. Absent means Envoy's standard output, as lines of JSON.
	Upstream string `json:"upstream,omitempty"`
	// What the collector speaks: otlp, or als, which is Envoy's own gRPC access log service. Default: otlp.
	// +enum=[LogOTLP, LogALS]
	Protocol string `json:"protocol,omitempty"`
	// For the protocol als, required and complete: entries of that protocol have the path with its query, the referer, and
	// the metadata of filters with all claims of tokens, and Envoy cannot leave them out. There may be tokens and personal
	// data in them.
	// +items={type: string, enum: [query, referer, metadata]}
	Discloses []string `json:"discloses,omitempty"`
	// Lines go to a file on the machine of each Envoy: NAME.log, with the name of this global config, in the directory of
	// its --access-log-dir. An Envoy without such a directory writes them to its standard output. Default: false.
	File bool `json:"file,omitempty"`
	// Path of the collector for logs over HTTP. Default: /v1/logs.
	Path string `json:"path,omitempty"`
	// A header with a key that the collector wants; absent means none.
	Credential *Credential `json:"credential,omitempty"`
	// Fields that are left out.
	// +items={type: string}
	Omit []string `json:"omit,omitempty"`
	// Other names for fields.
	// +additionalProperties={type: string, minLength: 1, maxLength: maxTagText}
	Rename map[string]string `json:"rename,omitempty"`
	// Fields that are added. One with the name of another field replaces it.
	// +maxItems=maxTags
	Fields []LogField `json:"fields,omitempty"`
	// Which requests are logged; absent means all.
	Only *LogOnly `json:"only,omitempty"`
	// Makes each line a text, with the names of fields in braces; {{ and }} are braces. Up to 4,096 bytes, and 64 names. A
	// field that a request does not have is -. Absent means JSON.
	// +maxLength=maxLogText
	// +example='{start_time} {method} {authority}{path} {response_code}'
	Text string `json:"text,omitempty"`
	// Only requests of services and routes whose route_filter_accesslog names this log are written. Default: false.
	AttachedOnly bool `json:"attached_only,omitempty"`
	// The requests of all services are written, whatever their route_filter_accesslog says. Default: false.
	Always bool `json:"always,omitempty"`
}

// LogField is a field of an access log. Exactly one of value, header, response_header, claim, tlv and consumer says what it
// has.
type LogField struct {
	// +required
	// +minLength=1
	Name string `json:"name"`
	// The same text in all lines.
	Value string `json:"value,omitempty"`
	// The first 256 bytes of a header of the request.
	Header string `json:"header,omitempty"`
	// The first 256 bytes of a header of the response.
	ResponseHeader string `json:"response_header,omitempty"`
	// The first 256 bytes of a claim of a token that http_filter_jwt has verified, or of a login.
	Claim string `json:"claim,omitempty"`
	// The first 256 bytes of what a load balancer said, by the name that a globalconfig_proxyprotocol gives it. Not for text.
	TLV string `json:"tlv,omitempty"`
	// What an http_filter_consumer has found: the name of the consumer, or its groups with commas between them. Without such
	// a filter, there is none, whatever a client sends.
	// +enum=[RecordedName, RecordedGroups]
	Consumer string `json:"consumer,omitempty"`
}

// LogOnly selects requests. One that meets any of these is logged.
type LogOnly struct {
	// Responses with this status or a higher one, and requests that got no response.
	// +minimum=100
	// +maximum=599
	StatusFrom int `json:"status_from,omitempty"`
	// Requests that took this long or longer.
	// +anyOf=[{type: string}]
	// +example=1s
	SlowerThan Duration `json:"slower_than,omitempty"`
	// The share of all requests, in percent.
	// +minimum=0.0001
	// +maximum=100
	Percent float64 `json:"percent,omitempty"`
}

// LogFieldNames are the fields of a line of the access log, sorted. The last four are those of proxies with
// traces, and of HTTPS listeners.
func LogFieldNames() []string {
	return []string{
		"authority", "bytes_received", "bytes_sent", "client", "downstream_direct_remote_address",
		"downstream_remote_address", "duration_ms", "method", "path", "protocol", "request_id", "response_code",
		"response_code_details", "response_flags", "route", "service", "start_time", "subject", "upstream_cluster",
		"upstream_duration_ms", "upstream_host", "upstream_transport_failure", "user_agent",
		"trace_id", "downstream_peer_subject", "sni", "tls_version",
	}
}

// What a collector of logs speaks.
const (
	LogOTLP = "otlp"
	LogALS  = "als"
)

const defaultLogsPath = "/v1/logs"

func readAccessLog(v *validator, at, name string, config JSON) Spec {
	c := AccessLogConfig{Path: defaultLogsPath, Protocol: LogOTLP}
	if !v.decode(at, config, &c) {
		return &c
	}
	if c.Upstream != "" {
		v.name(at+".upstream", c.Upstream, true)
	}
	v.urlPath(at+".path", c.Path)
	v.credential(at+".credential", c.Credential)
	if c.Credential != nil && c.Upstream == "" {
		v.add(at+".credential", "is for a collector; name it in upstream")
	}
	if c.File {
		v.logFile(at+".file", name, c)
	}
	v.oneOf(at+".protocol", c.Protocol, []string{LogOTLP, LogALS})
	v.als(at, c)
	known := LogFieldNames()
	for i, name := range c.Omit {
		v.oneOf(fmt.Sprintf("%s.omit[%d]", at, i), name, known)
	}
	v.logNames(at, c, known)
	v.logFields(at+".fields", c.Fields)
	if len(c.Fields) == 0 && !slices.ContainsFunc(known, func(name string) bool { return !slices.Contains(c.Omit, name) }) {
		v.add(at+".omit", "leaves no field; leave it out or add fields")
	}
	if c.Only != nil {
		v.logOnly(at+".only", *c.Only)
	}
	if c.Text != "" {
		v.logText(at, c)
	}
	if c.Always && c.AttachedOnly {
		v.add(at+".attached_only", "cannot be with always, which takes the requests of all services")
	}
	return &c
}

// maxLogFile is the longest name of a log that a file can have, with .log and what rotation adds.
const maxLogFile = 200

func (v *validator) logFile(field, name string, c AccessLogConfig) {
	if c.Upstream != "" {
		v.add(field, "cannot be with upstream: a log goes to one place")
	}
	if len(name) > maxLogFile {
		v.add(field, "needs a globalconfig_name of at most %d characters, which is the name of the file", maxLogFile)
	}
}

// logNames accepts fields whose names differ.
func (v *validator) logNames(at string, c AccessLogConfig, known []string) {
	names := map[string]bool{}
	for _, name := range known {
		names[name] = !slices.Contains(c.Omit, name) && c.Rename[name] == ""
	}
	for _, from := range slices.Sorted(maps.Keys(c.Rename)) {
		field, to := at+".rename."+from, c.Rename[from]
		v.oneOf(at+".rename", from, known)
		v.recordedName(field, to)
		if names[to] {
			v.add(field, "%q is another field", to)
		}
		names[to] = true
	}
}

func (v *validator) logFields(field string, fields []LogField) {
	if len(fields) > maxTags {
		v.add(field, "has %d fields; at most %d are allowed", len(fields), maxTags)
		return
	}
	seen := map[string]bool{}
	for i, f := range fields {
		at := fmt.Sprintf("%s[%d]", field, i)
		v.recordedName(at+".name", f.Name)
		if seen[f.Name] {
			v.add(at+".name", "%q is a field twice", f.Name)
		}
		seen[f.Name] = true
		if f.Claim != "" {
			v.claim(at+".claim", f.Claim)
			if strings.ContainsAny(f.Claim, "%:()") {
				v.add(at+".claim", "%q has one of %% : ( ), which a field cannot read", f.Claim)
			}
		}
		if f.TLV != "" {
			v.tlvName(at+".tlv", f.TLV)
		}
		v.recorded(at, f.Value, map[string]string{"header": f.Header, "response_header": f.ResponseHeader},
			other{"claim", f.Claim}, other{"tlv", f.TLV}, v.recordedConsumer(at, f.Consumer))
	}
}

func (v *validator) logOnly(at string, o LogOnly) {
	if o.StatusFrom != 0 {
		v.checkRange(at+".status_from", o.StatusFrom, 100, 599)
	}
	v.duration(at+".slower_than", o.SlowerThan)
	if o.SlowerThan != 0 && time.Duration(o.SlowerThan) < time.Millisecond {
		v.add(at+".slower_than", "%s is less than 1ms", time.Duration(o.SlowerThan))
	}
	if o.Percent != 0 && (o.Percent < 0.0001 || o.Percent > 100) {
		v.add(at+".percent", "%v is not between 0.0001 and 100", o.Percent)
	}
	if o == (LogOnly{}) {
		v.add(at, "selects no request; leave it out to log all")
	}
}

const maxLogText, maxLogTextFields = 4096, 64

// logText accepts a line of text.
func (v *validator) logText(at string, c AccessLogConfig) {
	const jsonOnly = "cannot be with text, which names the fields that it has"
	if c.Upstream != "" {
		v.add(at+".text", "is for standard output, and upstream is a collector, which gets fields")
	}
	for i, f := range c.Fields {
		if f.TLV != "" {
			v.add(fmt.Sprintf("%s.fields[%d].tlv", at, i), "cannot be with text: it may have a line break")
		}
	}
	if len(c.Omit) > 0 {
		v.add(at+".omit", jsonOnly)
	}
	if len(c.Rename) > 0 {
		v.add(at+".rename", jsonOnly)
	}
	if len(c.Text) > maxLogText {
		v.add(at+".text", "has %d bytes; at most %d are allowed", len(c.Text), maxLogText)
		return
	}
	if strings.ContainsFunc(c.Text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
		v.add(at+".text", "has a control character; a line break is added to each line")
	}
	parts, err := c.Line()
	if err != nil {
		v.add(at+".text", "%s", err)
		return
	}
	parts = slices.DeleteFunc(parts, func(p LogPart) bool { return p.Field == "" })
	if len(parts) > maxLogTextFields {
		v.add(at+".text", "has %d fields; at most %d are allowed", len(parts), maxLogTextFields)
		return
	}
	known := LogFieldNames()
	for _, f := range c.Fields {
		known = append(known, f.Name)
	}
	for _, p := range parts {
		v.oneOf(at+".text", p.Field, known)
	}
}

// LogPart is a part of a line: the name of a field, or else a text.
type LogPart struct{ Text, Field string }

// Line returns the parts of a line of text; none if lines are JSON. An error says what is wrong with the braces.
func (c *AccessLogConfig) Line() (parts []LogPart, err error) {
	text := ""
	for rest := c.Text; rest != ""; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			text, rest = text+rest, ""
			continue
		}
		text += rest[:at]
		brace := rest[at : at+1]
		if rest = rest[at+1:]; strings.HasPrefix(rest, brace) {
			text, rest = text+brace, rest[1:]
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if brace == "}" || !closed || name == "" {
			return nil, fmt.Errorf("has a %s without the name of a field; write %[1]s%[1]s for the character", brace)
		}
		if text != "" {
			parts, text = append(parts, LogPart{Text: text}), ""
		}
		parts, rest = append(parts, LogPart{Field: name}), after
	}
	if text != "" {
		parts = append(parts, LogPart{Text: text})
	}
	return parts, nil
}

func (c *AccessLogConfig) uses() []Key { return collectorKeys(c.Upstream, c.Credential) }
