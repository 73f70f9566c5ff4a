// Package accesslog is route_filter_accesslog: it sets in which logs the requests of a service or route are written.
// The filter only says so, in the metadata of the request; the logs ask for it (seam.InLog).
package accesslog

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	setmetadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_metadata/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name                   = "envoy.filters.http.set_metadata/logs"
	key  seam.Key[*Policy] = "accesslog"
)

// Policy names the logs that requests are written to.
type Policy struct {
	Logs []string `json:"logs"`
}

// Filter returns the filter.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterAccessLog, Config: seam.Adds(key, replace),
		Name: name, Listener: nothing, Disabled: true, Host: seam.OfHost(key, messages), Route: seam.OfRoute(key, messages),
		ChangeHost: sayOfHost, Describe: describe,
	}
}

func replace(_ *Policy, f *model.AccessLogFilter, _ seam.Place) (*Policy, error) {
	return &Policy{Logs: f.Logs}, nil
}

func nothing(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &setmetadatav3.Config{}}}
}

func (p *Policy) list() *structpb.ListValue {
	out := &structpb.ListValue{}
	for _, log := range p.Logs {
		out.Values = append(out.Values, structpb.NewStringValue(log))
	}
	return out
}

func messages(p *Policy) ([]seam.Message, error) {
	logs := &structpb.Struct{Fields: map[string]*structpb.Value{seam.Logs: structpb.NewListValue(p.list())}}
	return []seam.Message{{Name: name, Config: &setmetadatav3.Config{
		Metadata: []*setmetadatav3.Metadata{{MetadataNamespace: seam.Metadata, Value: logs, AllowOverwrite: true}},
	}}}, nil
}

// sayOfHost is for requests that Envoy answers before any filter sees them: those that no route is for, and websockets
// that are not allowed.
func sayOfHost(h *ir.Host, out *routev3.VirtualHost) error {
	if p := key.Of(h.Filters); p != nil {
		out.Metadata = seam.Saying(out.GetMetadata(), seam.Logs, structpb.NewListValue(p.list()))
	}
	return nil
}

func describe(r seam.Request) (string, error) {
	m, err := seam.MessageOf(name, r, &setmetadatav3.Config{})
	var logs []string
	for _, said := range m.GetMetadata() {
		for _, log := range said.GetValue().GetFields()[seam.Logs].GetListValue().GetValues() {
			logs = append(logs, log.GetStringValue())
		}
	}
	if len(logs) == 0 {
		return "the request is in no log but those that are always written", err
	}
	return "the request is in the logs " + strings.Join(logs, ", ") + ", and in those that are always written", err
}
