package translate

import (
	"net/http"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// ExtProcFilter is the name of the filter that sends requests and responses to another service.
const ExtProcFilter = "envoy.filters.http.ext_proc"

// processorTimeout is how long a processor may take for one message. A route cannot set it.
const processorTimeout = time.Second

// extProcFilter names a processor that does not exist, so that it refuses every request. A processor
// cannot change the route, since earlier filters checked the request for it.
func extProcFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: ExtProcFilter, config: &extprocv3.ExternalProcessor{
		GrpcService:      processor(noCluster),
		MessageTimeout:   seconds(processorTimeout),
		MutationRules:    mutationRules(),
		RouteCacheAction: extprocv3.ExternalProcessor_RETAIN,
		StatusOnError:    &typev3.HttpStatus{Code: typev3.StatusCode(http.StatusServiceUnavailable)},
	}}}
}

func processor(cluster string) *corev3.GrpcService {
	return &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: cluster}}}
}

func extProcOfHost(h *ir.Host) ([]filterConfig, error) { return extProc(h.ExtProc), nil }

func extProcOfRoute(r *ir.Route) ([]filterConfig, error) { return extProc(r.ExtProc), nil }

func extProc(p *ir.ExtProc) []filterConfig {
	if p == nil {
		return nil
	}
	return []filterConfig{{name: ExtProcFilter, config: &extprocv3.ExtProcPerRoute{Override: &extprocv3.ExtProcPerRoute_Overrides{Overrides: &extprocv3.ExtProcOverrides{
		GrpcService: processor(p.Cluster), FailureModeAllow: wrapperspb.Bool(p.Allow),
		ProcessingMode: &extprocv3.ProcessingMode{
			RequestHeaderMode: headerMode(p.RequestHeaders), ResponseHeaderMode: headerMode(p.ResponseHeaders),
			RequestBodyMode: bodyMode(p.RequestBody), ResponseBodyMode: bodyMode(p.ResponseBody),
			RequestTrailerMode: extprocv3.ProcessingMode_SKIP, ResponseTrailerMode: extprocv3.ProcessingMode_SKIP,
		},
	}}}}}
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

// extProcReplies explain why a request is refused that could not be processed. A processor's own
// answer stays unchanged.
func extProcReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	filter, err := celFilter(begins("ext_proc_error"))
	return []*hcmv3.ResponseMapper{{
		Filter: filter, StatusCode: u32(http.StatusServiceUnavailable), Body: inline("the external processor cannot be asked\n"),
	}}, err
}
