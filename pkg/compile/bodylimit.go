package compile

import (
	"fmt"

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
