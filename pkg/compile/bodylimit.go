package compile

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addBodyLimit bounds bodies, and refuses websockets on the route: Envoy would wait for the end of
// a body that has none.
func addBodyLimit(r *ir.Route, f *model.BodyLimitFilter) {
	r.BodyLimit = &ir.BodyLimit{Bytes: f.Bytes, Decompress: f.Decompress}
	if r.Forward != nil {
		r.Forward.NoUpgrade = true
	}
}

// limitedWebsocket returns the conflict if a route is configured both to limit bodies and to accept
// websockets. The text follows the name of the route. Empty means no conflict.
func limitedWebsocket(t *model.RouteTree) string {
	if w := t.Route.Config.Websocket; w == nil || !*w {
		return ""
	}
	for _, f := range t.Filters {
		if f.Type == model.FilterBodyLimit {
			return fmt.Sprintf("has filter %s, a body limit, and websocket in its Route_config, whose requests would wait forever for the end of a body,", f.Name)
		}
	}
	return ""
}

// addLengthRoute adds the route that refuses bodies by their Content-Length. Over HTTP/2, Envoy does not count a body
// that arrives in one piece. The length of a packed body does not matter if it is unpacked.
func addLengthRoute(r *ir.Route, t *model.RouteTree) {
	if r.BodyLimit == nil {
		return
	}
	refused := *r
	refused.Before, refused.Forward, refused.Redirect, refused.GRPCWeb, refused.GRPCJSON = nil, nil, nil, false, nil
	refused.Respond = &ir.Respond{Status: http.StatusRequestEntityTooLarge, Body: "the body of the request is larger than is allowed here\n"}
	refused.Match.Headers = append(slices.Clone(r.Match.Headers), ir.ValueMatch{Name: "content-length", Above: r.BodyLimit.Bytes})
	if r.BodyLimit.Decompress {
		refused.Match.Headers = append(refused.Match.Headers, ir.ValueMatch{Name: "content-encoding", Invert: true})
	}
	first := []*ir.Route{&refused}
	if f := cmp.Or(corsFilterOf(t.Filters), corsFilterOf(t.ServiceFilters)); f != nil {
		first = []*ir.Route{readable(&refused, ir.ValueMatch{Name: "origin", Regex: f.Expression()}), &refused}
	}
	r.Before = append(first, r.Before...)
}
