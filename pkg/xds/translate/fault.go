package translate

import (
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// FaultFilter is the name of the filter that delays or fails requests on purpose.
const FaultFilter = "envoy.filters.http.fault"

// faultFilter does nothing without the message of a host or route.
func faultFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: FaultFilter, config: &faultv3.HTTPFault{}}}
}
