package translate

import (
	statefulv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// AffinityFilter is the name of the filter that keeps a client at one endpoint.
const AffinityFilter = "envoy.filters.http.stateful_session"

// affinityFilter does nothing without the message of a host or route.
func affinityFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: AffinityFilter, config: &statefulv3.StatefulSession{}}}
}
