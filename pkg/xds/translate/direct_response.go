package translate

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// maxDirectResponse is the bound of Envoy for the body of an answer, in bytes, one for all routes. A
// route beyond it makes Envoy refuse all of them. It is that of model.MaxDirectResponse.
const maxDirectResponse = 65536

// applyDirectResponse makes the route answer by itself.
func applyDirectResponse(out *routev3.Route, r *ir.Respond) {
	action := &routev3.DirectResponseAction{Status: uint32(r.Status)} //nolint:gosec // a status code
	if r.Body != "" {
		action.Body = &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: r.Body}}
	}
	out.Action = &routev3.Route_DirectResponse{DirectResponse: action}
	for _, h := range r.Headers {
		// Envoy takes what is between percent signs for a command.
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, setHeader(h.Name, strings.ReplaceAll(h.Value, "%", "%%")))
	}
}
