package translate

import (
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// CORSFilter is the name of the filter that answers preflights, and says which web pages may read answers.
const CORSFilter = "envoy.filters.http.cors"

// corsFilter does nothing without the message of a host or route.
func corsFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: CORSFilter, config: &corsv3.Cors{}}}
}
