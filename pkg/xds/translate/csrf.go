package translate

import (
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	csrfv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/csrf/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// CSRFFilter is the name of the filter that refuses changing requests from pages of other
// sites.
const CSRFFilter = "envoy.filters.http.csrf"

// csrfFilter allows changing requests only from pages of the same host.
func csrfFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: CSRFFilter, config: &csrfv3.CsrfPolicy{FilterEnabled: always()}}}
}

func csrfOfHost(h *ir.Host) ([]filterConfig, error) { return csrfPolicy(h.CSRF), nil }

func csrfOfRoute(r *ir.Route) ([]filterConfig, error) { return csrfPolicy(r.CSRF), nil }

func csrfPolicy(c *ir.CSRF) []filterConfig {
	if c == nil {
		return nil
	}
	out := &csrfv3.CsrfPolicy{FilterEnabled: always()}
	for _, host := range c.Hosts {
		out.AdditionalOrigins = append(out.AdditionalOrigins, stringMatcher(ir.ValueMatch{Exact: host}))
	}
	return []filterConfig{{name: CSRFFilter, config: out}}
}

func always() *corev3.RuntimeFractionalPercent {
	return &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{Numerator: 100, Denominator: typev3.FractionalPercent_HUNDRED}}
}

func csrfReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	filter, err := celFilter(details + " == 'csrf_origin_mismatch'")
	return []*hcmv3.ResponseMapper{{
		Filter: filter, StatusCode: u32(http.StatusForbidden), Body: inline("only pages of this host, and of those that it lists, may ask for changes here\n"),
	}}, err
}
