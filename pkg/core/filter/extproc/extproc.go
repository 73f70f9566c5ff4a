// Package extproc is http_filter_extproc: it sends requests and responses to an external processor.
package extproc

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name                      = "envoy.filters.http.ext_proc"
	key  seam.Key[*Processor] = "extProc"
)

// processorTimeout is how long a processor may take for one message. A route cannot set it.
const processorTimeout = time.Second

// Processor sends requests and responses to an external processor.
type Processor struct {
	// Cluster is the name of one of the Asked clusters.
	Cluster         string `json:"cluster"`
	RequestHeaders  bool   `json:"requestHeaders,omitempty"`
	ResponseHeaders bool   `json:"responseHeaders,omitempty"`
	// RequestBody and ResponseBody are "buffered" or "streamed"; empty means that the processor does not receive the
	// body.
	RequestBody  string `json:"requestBody,omitempty"`
	ResponseBody string `json:"responseBody,omitempty"`
	// Allow lets messages pass that cannot be sent to the processor.
	Allow bool `json:"allow,omitempty"`
}

// Filter returns the filter. A route's configuration replaces its service's.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterExtProc, Config: seam.Hooks(addToHost, addToRoute),
		Name: name, Listener: nobody, Disabled: true,
		Host: seam.OfHost(key, messages), Route: seam.OfRoute(key, messages),
		Refuses: map[string]string{"ext_proc_": model.FilterExtProc},
		Replies: replies, Describe: describe,
	}
}

func addToHost(h *ir.Host, f *model.ExtProcFilter, at seam.Place) error {
	p, c, err := processorOf(f, at)
	if err == nil {
		h.Filters, h.Asked = key.In(h.Filters, p), ir.WithCluster(h.Asked, c)
	}
	return err
}

func addToRoute(r *ir.Route, f *model.ExtProcFilter, at seam.Place) error {
	p, c, err := processorOf(f, at)
	if err == nil {
		r.Filters, r.Asked = key.In(r.Filters, p), ir.WithCluster(r.Asked, c)
	}
	return err
}

func processorOf(f *model.ExtProcFilter, at seam.Place) (*Processor, *ir.Cluster, error) {
	c, err := at.Server(f.Upstream, true)
	if err != nil {
		return nil, nil, err
	}
	sent := func(mode string) string { return strings.TrimPrefix(mode, model.BodyNone) }
	return &Processor{
		Cluster: c.Name, RequestHeaders: f.SendsRequestHeaders(), ResponseHeaders: f.ResponseHeaders,
		RequestBody: sent(f.RequestBody), ResponseBody: sent(f.ResponseBody), Allow: f.OnError == model.OnErrorAllow,
	}, c, nil
}

// nobody names a processor that does not exist, so that it refuses every request. A processor
// cannot change the route, since earlier filters checked the request for it.
func nobody(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &extprocv3.ExternalProcessor{
		GrpcService:      processor(seam.NoCluster),
		MessageTimeout:   durationpb.New(processorTimeout),
		MutationRules:    seam.MutationRules(),
		RouteCacheAction: extprocv3.ExternalProcessor_RETAIN,
		StatusOnError:    &typev3.HttpStatus{Code: typev3.StatusCode(http.StatusServiceUnavailable)},
	}}}
}

func processor(cluster string) *corev3.GrpcService {
	return &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
		EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: cluster},
	}}
}

func messages(p *Processor) ([]seam.Message, error) {
	overrides := &extprocv3.ExtProcOverrides{
		GrpcService: processor(p.Cluster), FailureModeAllow: wrapperspb.Bool(p.Allow),
		ProcessingMode: &extprocv3.ProcessingMode{
			RequestHeaderMode: headerMode(p.RequestHeaders), ResponseHeaderMode: headerMode(p.ResponseHeaders),
			RequestBodyMode: bodyMode(p.RequestBody), ResponseBodyMode: bodyMode(p.ResponseBody),
			RequestTrailerMode: extprocv3.ProcessingMode_SKIP, ResponseTrailerMode: extprocv3.ProcessingMode_SKIP,
		},
	}
	return []seam.Message{{Name: name, Config: &extprocv3.ExtProcPerRoute{
		Override: &extprocv3.ExtProcPerRoute_Overrides{Overrides: overrides},
	}}}, nil
}

func headerMode(send bool) extprocv3.ProcessingMode_HeaderSendMode {
	if send {
		return extprocv3.ProcessingMode_SEND
	}
	return extprocv3.ProcessingMode_SKIP
}

func bodyMode(mode string) extprocv3.ProcessingMode_BodySendMode {
	switch mode {
	case "buffered":
		return extprocv3.ProcessingMode_BUFFERED
	case "streamed":
		return extprocv3.ProcessingMode_STREAMED
	}
	return extprocv3.ProcessingMode_NONE
}

// replies explain why a request is refused that could not be processed. A processor's own answer stays unchanged.
func replies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	const body = "the external processor is not available\n"
	m, err := seam.Reply(0, seam.Begins("ext_proc_error"), http.StatusServiceUnavailable, body)
	return []*hcmv3.ResponseMapper{m}, err
}

// describe says what the processor receives. Its answer is unknown: an explanation
// calls no server.
func describe(r seam.Request) (string, error) {
	message, err := seam.MessageOf(name, r, &extprocv3.ExtProcPerRoute{})
	if err != nil {
		return "", err
	}
	o := message.GetOverrides()
	m := o.GetProcessingMode()
	var parts []string
	for _, part := range []struct {
		what string
		sent bool
	}{
		{"the headers of the request", m.GetRequestHeaderMode() == extprocv3.ProcessingMode_SEND},
		{"the body of the request", m.GetRequestBodyMode() != extprocv3.ProcessingMode_NONE},
		{"the headers of the answer", m.GetResponseHeaderMode() == extprocv3.ProcessingMode_SEND},
		{"the body of the answer", m.GetResponseBodyMode() != extprocv3.ProcessingMode_NONE},
	} {
		if part.sent {
			parts = append(parts, part.what)
		}
	}
	away := "503"
	if o.GetFailureModeAllow().GetValue() {
		away = "they pass unchanged"
	}
	return fmt.Sprintf("sends cluster %s %s, which may change them or answer itself; %s if it is unavailable",
		o.GetGrpcService().GetEnvoyGrpc().GetClusterName(), strings.Join(parts, ", "), away), nil
}
