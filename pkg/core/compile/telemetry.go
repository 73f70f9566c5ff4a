package compile

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// addTelemetry says where spans and logs of requests go. If a collector cannot be used, they are missing, and requests
// are answered as before.
func addTelemetry(l *ir.Listener, t *model.ProxyTree, s Settings, _ ir.Needs) {
	told := TelemetryOf(t, s)
	if l.Tracing, l.AccessLogs = told.Tracing, told.AccessLogs; len(l.AccessLogs) > 0 {
		l.AccessLog = false
	}
}

// maxAccessLogs bounds what the logs of a proxy cost each of its requests.
const maxAccessLogs = 8

// Telemetry is what a proxy tells about its requests.
type Telemetry struct {
	// Tracing says where spans go; nil means nowhere.
	Tracing    *ir.Tracing
	AccessLogs []ir.AccessLog
	// Conditions say why a global config sends nothing.
	Conditions []model.Condition
}

// Files returns the names of the logs that go to a file, sorted.
func (t Telemetry) Files() (names []string) {
	for _, log := range t.AccessLogs {
		if log.File {
			names = append(names, log.Name)
		}
	}
	return names
}

// TelemetryOf returns what the global configs of a proxy want to be told about its requests. Of those for tracing, the
// first by name applies; each access log is a log of its own.
func TelemetryOf(t *model.ProxyTree, s Settings) (told Telemetry) {
	traced := "" // the name of the one for tracing
	for _, g := range t.GlobalConfigs {
		var err error
		switch {
		case g.Type == model.GlobalConfigAccessLog:
			var log ir.AccessLog
			if log, err = accessLogOf(g, t, s); err == nil && len(told.AccessLogs) == maxAccessLogs {
				err = fmt.Errorf("proxy %s has %d others, which is the most", t.Proxy.Name, maxAccessLogs)
			}
			if err == nil {
				told.AccessLogs = append(told.AccessLogs, log)
			} else {
				err = fmt.Errorf("this log is not written: %w", err)
			}
		case g.Type == model.GlobalConfigTracing && traced != "":
			err = fmt.Errorf("proxy %s is traced as globalconfig %s says, and not as this one", t.Proxy.Name, traced)
		case g.Type == model.GlobalConfigTracing:
			traced = g.Name
			if told.Tracing, err = tracingOf(g, t, s); err != nil {
				err = fmt.Errorf("requests are not traced: %w", err)
			}
		}
		if err != nil {
			told.Conditions = append(told.Conditions, model.Condition{
				Key: g.Key(), Code: model.Quarantined, Message: err.Error(),
			})
		}
	}
	return told
}

func tracingOf(g *model.ParsedGlobalConfig, t *model.ProxyTree, s Settings) (*ir.Tracing, error) {
	c, ok := g.Spec.(*model.TracingConfig)
	if !ok || g.Fault != nil {
		return nil, unreadable(g)
	}
	out := &ir.Tracing{
		ServiceName: cmp.Or(c.ServiceName, t.Proxy.Name), Sampling: 100,
		IgnoreParent: c.Parent == model.ParentIgnore, B3: c.B3, ForceHeader: c.ForceHeader,
		UpstreamSpans: c.UpstreamSpans,
	}
	if c.Sampling != nil {
		out.Sampling = *c.Sampling
	}
	for _, tag := range c.Tags {
		out.Tags = append(out.Tags, ir.TraceTag(tag))
	}
	var err error
	out.Collector, err = collector(Places(t.Named, s)(g.Key()), c.Upstream, c.Path, c.Credential)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func accessLogOf(g *model.ParsedGlobalConfig, t *model.ProxyTree, s Settings) (out ir.AccessLog, err error) {
	c, ok := g.Spec.(*model.AccessLogConfig)
	if !ok || g.Fault != nil {
		return out, unreadable(g)
	}
	out = ir.AccessLog{
		Name: g.Name, ServiceName: t.Proxy.Name, Omit: c.Omit, Rename: c.Rename,
		AttachedOnly: c.AttachedOnly, Always: c.Always, File: c.File,
	}
	line, err := c.Line()
	for _, p := range line {
		out.Line = append(out.Line, ir.LogPart(p))
	}
	for _, f := range c.Fields {
		out.Fields = append(out.Fields, ir.LogField(f))
	}
	if o := c.Only; o != nil {
		const percent = 10_000
		out.Only = &ir.LogOnly{
			StatusFrom: o.StatusFrom, SlowerThan: time.Duration(o.SlowerThan), Millionths: uint32(o.Percent*percent + 0.5),
		}
	}
	out.ALS = c.Protocol == model.LogALS
	if c.Upstream == "" || err != nil {
		return out, err
	}
	at := Places(t.Named, s)(g.Key())
	if out.ALS {
		if _, err := at.Server(c.Upstream, true); err != nil {
			return out, err
		}
	}
	if out.Collector, err = collector(at, c.Upstream, c.Path, c.Credential); out.ALS && err == nil {
		out.Collector.Cluster = streaming(out.Collector.Cluster, g.Name)
	}
	return out, err
}

func unreadable(g *model.ParsedGlobalConfig) error {
	return fmt.Errorf("its configuration cannot be read: %w", cmp.Or(g.Fault, errors.New("it is not that of a "+g.Type)))
}

// collector returns an upstream that receives OTLP, and the path if it does so over HTTP.
func collector(at seam.Place, upstream, path string, key *model.Credential) (*ir.Collector, error) {
	cluster, err := at.Server(upstream, false)
	if err != nil {
		return nil, err
	}
	u := at.Upstream(upstream)
	if u.Protocol == "h2" || u.Protocol == "h2c" {
		path = ""
	}
	host := net.JoinHostPort(strings.TrimSuffix(u.IP, "."), strconv.Itoa(u.Port))
	if _, is := u.Socket(); is {
		host = "localhost"
	}
	cluster = bounded(cluster)
	if key != nil {
		value, err := at.Secret(key.Secret)
		if err != nil {
			return nil, err
		}
		if !model.IsHeaderText(value) {
			return nil, fmt.Errorf("secret %s is not the value of a header: it has a control character or ends in a space", key.Secret)
		}
		cluster.Credential = &ir.Credential{Header: cmp.Or(key.Header, "authorization"), Secret: key.Secret, Value: value}
		// Another global config may send another key to the same upstream.
		cluster.Name += "/" + at.Key.Name()
	}
	return &ir.Collector{Cluster: cluster, Host: host, Path: path}, nil
}

const (
	// maxSending bounds the messages to a collector that are not answered yet. Each holds 16 KB and more in Envoy.
	maxSending = 256
	// sendWithin is how long a collector may take for a message. Envoy applies the timeout of a gRPC service neither to
	// spans nor to logs.
	sendWithin = 5 * time.Second
)

// bounded returns the cluster with bounds for telemetry, so that a collector that does not answer costs little memory.
func bounded(c *ir.Cluster) *ir.Cluster {
	out := *c
	out.Name, out.MaxDuration = c.Name+"/telemetry", sendWithin
	out.Limits.Requests, out.Limits.Pending = min(c.Limits.Requests, maxSending), min(c.Limits.Pending, maxSending)
	return &out
}

// streaming returns the cluster of a collector for a log that is a stream without an end, one for each worker of Envoy.
// A bound in time would cut it and lose lines. Envoy drops lines while a stream has too much that is not read.
func streaming(c *ir.Cluster, log string) *ir.Cluster {
	out := *c
	if out.MaxDuration, out.Streams = 0, true; out.Credential == nil {
		out.Name += "/" + log // with a credential, it has that name already
	}
	return &out
}
