package compile

import (
	"cmp"
	"fmt"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// addTracing sends spans of requests to the proxy's collector. If that cannot be used, there are no spans, and requests
// are answered as before.
func addTracing(l *ir.Listener, t *model.ProxyTree, s Settings, _ ir.Needs) {
	l.Tracing, _ = Tracing(t, s)
}

// Tracing returns where a proxy sends spans, nil for nowhere. The condition says why a global config sends none; nil
// means that all is well.
func Tracing(t *model.ProxyTree, s Settings) (*ir.Tracing, *model.Condition) {
	for _, g := range t.GlobalConfigs {
		if g.Type != model.GlobalConfigTracing {
			continue
		}
		tracing, err := tracingOf(g, t, s)
		if err != nil {
			return nil, &model.Condition{
				Key: g.Key(), Code: model.Quarantined, Message: "requests are not traced: " + err.Error(),
			}
		}
		return tracing, nil
	}
	return nil, nil
}

func tracingOf(g *model.ParsedGlobalConfig, t *model.ProxyTree, s Settings) (*ir.Tracing, error) {
	c, ok := g.Spec.(*model.TracingConfig)
	if !ok || g.Fault != nil {
		return nil, fmt.Errorf("globalconfig %s cannot be read (%w)", g.Name, g.Fault)
	}
	at := Places(t.Named, s)(g.Key())
	out := &ir.Tracing{
		ServiceName: cmp.Or(c.ServiceName, t.Proxy.Name), Sampling: 100,
		IgnoreParent: c.Parent == model.ParentIgnore, ForceHeader: c.ForceHeader,
		UpstreamSpans: c.UpstreamSpans,
	}
	if c.Sampling != nil {
		out.Sampling = *c.Sampling
	}
	for _, tag := range c.Tags {
		out.Tags = append(out.Tags, ir.TraceTag(tag))
	}
	var err error
	if out.Collector, err = at.Server(c.Upstream, false); err != nil {
		return nil, err
	}
	if u := at.Upstream(c.Upstream); u.Protocol != "h2" && u.Protocol != "h2c" {
		out.Path = c.Path
	}
	return out, nil
}
