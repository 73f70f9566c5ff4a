package translate

import (
	"fmt"
	"net/http"
	"slices"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// routerReplies come after those of all filters.
func routerReplies(l ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	paths, err := pathReplies(l)
	if err != nil {
		return nil, err
	}
	others, err := otherReplies()
	return append(paths, others), err
}

// otherReplies replace the texts of the refusals that no filter's replies match: Envoy's own are empty, or contain
// what it knows of an upstream.
func otherReplies() (*hcmv3.ResponseMapper, error) {
	filter, err := seam.CEL("response.code >= 400 && !(" + seam.Begins("direct_response", "ext_", "lua_", "grpc_json", "early_grpc_json") + " || " + seam.Details + " == '')")
	text := "'the request cannot be served'"
	for _, r := range slices.Backward(refusalTexts()) {
		text = fmt.Sprintf("response.code == %d ? '%s' : %s", r.status, r.text, text)
	}
	return &hcmv3.ResponseMapper{Filter: filter, BodyFormatOverride: seam.PlainText("%CEL(" + text + ")%")}, err
}

// refusalText is what a client reads with a status.
type refusalText struct {
	status int
	text   string
}

func refusalTexts() []refusalText {
	return []refusalText{
		{http.StatusBadRequest, "the request is malformed"},
		{http.StatusForbidden, "this is not allowed here"},
		{http.StatusNotFound, "nothing is served for this host and path"},
		{http.StatusRequestTimeout, "the request did not arrive in time"},
		{http.StatusRequestEntityTooLarge, "the request is too large"},
		{http.StatusRequestHeaderFieldsTooLarge, "the headers of the request are too large"},
		{http.StatusBadGateway, "the service did not give a valid answer"},
		{http.StatusServiceUnavailable, "the service is not available at the moment"},
		{http.StatusGatewayTimeout, "the service did not answer in time"},
	}
}
