package translate

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// maxDirectResponse is Envoy's bound for response bodies in bytes. It is one bound for all routes:
// Envoy refuses all routes if one exceeds it. It equals model.MaxDirectResponse.
const maxDirectResponse = 65536

// applyDirectResponse makes the route answer without an upstream.
func applyDirectResponse(out *routev3.Route, r *ir.Respond) {
	action := &routev3.DirectResponseAction{Status: uint32(r.Status)} //nolint:gosec // a status code
	if r.Body != "" {
		action.Body = &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: r.Body}}
	}
	out.Action = &routev3.Route_DirectResponse{DirectResponse: action}
	for _, h := range r.Headers {
		// Envoy reads text between percent signs as a command.
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, setHeader(h.Name, strings.ReplaceAll(h.Value, "%", "%%")))
	}
}
