package compile

import (
	"fmt"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addBodyLimit bounds bodies, and closes the route to websockets: Envoy would wait for the end of a
// body that has none.
func addBodyLimit(r *ir.Route, f *model.BodyLimitFilter) {
	r.BodyLimit = &ir.BodyLimit{Bytes: f.Bytes, Decompress: f.Decompress}
	if r.Forward != nil {
		r.Forward.NoUpgrade = true
	}
}

// limitedWebsocket says, in words that follow the name of a route, that it is told to limit bodies
// and to take websockets. Empty means that this is not so.
func limitedWebsocket(t *model.RouteTree) string {
	if w := t.Route.Config.Websocket; w == nil || !*w {
		return ""
	}
	for _, f := range t.Filters {
		if f.Type == model.FilterBodyLimit {
			return fmt.Sprintf("has filter %s, a limit of bodies, and websocket in its Route_config, which would wait for the end of a body for ever,", f.Name)
		}
	}
	return ""
}
