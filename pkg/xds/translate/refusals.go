package translate

import (
	"errors"
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

// frequentReplies come first: Envoy compares each response of its own with one mapper after the other, and most of them
// cost as much as 3% of a request. The answers of routes stay as they are. What no host or route is for has the text of
// otherReplies.
func frequentReplies() ([]*hcmv3.ResponseMapper, error) {
	direct, err := seam.CEL(ofRoute)
	nobody, err2 := seam.CEL(seam.Details + " == 'route_not_found'")
	return []*hcmv3.ResponseMapper{
		{Filter: direct},
		{
			Filter:             seam.AllOf(seam.StatusAtLeast(http.StatusNotFound), seam.StatusAtMost(http.StatusNotFound), nobody),
			BodyFormatOverride: seam.PlainText(nothingServed),
		},
	}, errors.Join(err, err2)
}

// otherReplies replace the texts of the refusals that no filter's replies match: Envoy's own are empty, or contain
// what it knows of an upstream.
func otherReplies() (*hcmv3.ResponseMapper, error) {
	filter, err := seam.CEL("response.code >= 400 && !(" + seam.Begins("direct_response", "ext_", "lua_", "grpc_json", "early_grpc_json") + " || " + seam.Details + " == '')")
	return &hcmv3.ResponseMapper{Filter: filter, BodyFormatOverride: seam.PlainText(byStatus(refusalTexts()))}, err
}

// ofRoute is the condition that a route answers by itself.
const ofRoute = seam.Details + " == 'direct_response'"

// ownAnswers matches refusals that are answers of routes and have no content type: those of operators have one. Their
// text is that of the route.
func ownAnswers() (*hcmv3.ResponseMapper, error) {
	filter, err := seam.CEL(ofRoute + " && response.code >= 400 && !('content-type' in response.headers)")
	return &hcmv3.ResponseMapper{Filter: filter, BodyFormatOverride: seam.PlainText(byStatus([]refusalText{
		{http.StatusBadRequest, "the name of a query parameter is escaped"},
		{http.StatusForbidden, "this host is served over HTTPS only"},
		{http.StatusNotFound, nothingServed},
		{http.StatusRequestEntityTooLarge, "the body of the request is larger than is allowed here"},
		{http.StatusServiceUnavailable, "this service is not available"},
	}))}, err
}

// byStatus is a format for the text of a status.
func byStatus(texts []refusalText) string {
	text := "'the request cannot be served'"
	for _, r := range slices.Backward(texts) {
		text = fmt.Sprintf("response.code == %d ? '%s' : %s", r.status, r.text, text)
	}
	return "%CEL(" + text + ")%"
}

// refusalText is what a client reads with a status.
type refusalText struct {
	status int
	text   string
}

const nothingServed = "nothing is served for this host and path"

func refusalTexts() []refusalText {
	return []refusalText{
		{http.StatusBadRequest, "the request is malformed"},
		{http.StatusForbidden, "this is not allowed here"},
		{http.StatusNotFound, nothingServed},
		{http.StatusRequestTimeout, "the request did not arrive in time"},
		{http.StatusRequestEntityTooLarge, "the request is too large"},
		{http.StatusRequestHeaderFieldsTooLarge, "the headers of the request are too large"},
		{http.StatusBadGateway, "the service did not give a valid answer"},
		{http.StatusServiceUnavailable, "the service is not available at the moment"},
		{http.StatusGatewayTimeout, "the service did not answer in time"},
	}
}
