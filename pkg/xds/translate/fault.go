package translate

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	commonfaultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// FaultFilter is the name of the filter that delays or fails requests on purpose.
const FaultFilter = "envoy.filters.http.fault"

// faultFilter does nothing without a host's or route's message.
func faultFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: FaultFilter, config: &faultv3.HTTPFault{}}}
}

func faultOfHost(h *ir.Host) ([]filterConfig, error) { return fault(h.Fault), nil }

func faultOfRoute(r *ir.Route) ([]filterConfig, error) { return fault(r.Fault), nil }

// fault ignores the headers with which Envoy lets clients choose faults.
func fault(f *ir.Fault) []filterConfig {
	if f == nil {
		return nil
	}
	out := &faultv3.HTTPFault{DisableDownstreamClusterStats: true}
	share := &typev3.FractionalPercent{Numerator: uint32(f.Millionths), Denominator: typev3.FractionalPercent_MILLION} //nolint:gosec // at most a million
	if f.Delay > 0 {
		out.Delay = &commonfaultv3.FaultDelay{
			FaultDelaySecifier: &commonfaultv3.FaultDelay_FixedDelay{FixedDelay: durationpb.New(f.Delay)}, Percentage: share,
		}
	}
	if f.Abort > 0 {
		out.Abort = &faultv3.FaultAbort{ErrorType: &faultv3.FaultAbort_HttpStatus{HttpStatus: uint32(f.Abort)}, Percentage: share} //nolint:gosec // a status code
	}
	if f.Header != "" {
		out.Headers = []*routev3.HeaderMatcher{headerMatcher(ir.ValueMatch{Name: f.Header})}
	}
	return []filterConfig{{name: FaultFilter, config: out}}
}

func faultReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	filter, err := celFilter(details + " == 'fault_filter_abort'")
	return []*hcmv3.ResponseMapper{{Filter: filter, Body: inline("this request was failed on purpose, as a test\n")}}, err
}
