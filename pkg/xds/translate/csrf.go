package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	csrfv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/csrf/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// CSRFFilter is the name of the filter that refuses changes that another site's page asks for.
const CSRFFilter = "envoy.filters.http.csrf"

// csrfFilter lets pages of the host itself ask for changes, and no other.
func csrfFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: CSRFFilter, config: &csrfv3.CsrfPolicy{FilterEnabled: always()}}}
}

func always() *corev3.RuntimeFractionalPercent {
	return &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{Numerator: 100, Denominator: typev3.FractionalPercent_HUNDRED}}
}
