package translate

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// LuaFilter is the name of the filter that runs scripts.
const LuaFilter = "envoy.filters.http.lua"

// luaGuard wraps a script. It hides files, processes, the rest of Lua and all of Envoy's API that leads out of the route, stops a script that takes
// too long, and answers 503 if it fails. Envoy alone would allow the request.
//
//go:embed lua_guard.lua
var luaGuard string

// luaFilter refuses every request. The route of a request stays the one whose filters it has passed, whatever headers a
// script changes: Envoy would choose another one after each change.
func luaFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: LuaFilter, config: &luav3.Lua{
		DefaultSourceCode: inline(`function envoy_on_request(handle) handle:respond({[":status"] = "503"}, "") end`),
		ClearRouteCache:   wrapperspb.Bool(false),
	}}}
}

func luaOfHost(h *ir.Host) ([]filterConfig, error) { return guarded(h.Lua), nil }

func luaOfRoute(r *ir.Route) ([]filterConfig, error) { return guarded(r.Lua), nil }

func guarded(l *ir.Lua) []filterConfig {
	if l == nil {
		return nil
	}
	var calls strings.Builder
	for _, upstream := range slices.Sorted(maps.Keys(l.Calls)) {
		fmt.Fprintf(&calls, `["%s"]="%s";`, luaText(upstream), luaText(l.Calls[upstream]))
	}
	code := strings.NewReplacer("@SCRIPT@", luaText(l.Script), "@CALLS@", calls.String()).Replace(luaGuard)
	return []filterConfig{{name: LuaFilter, config: &luav3.LuaPerRoute{Override: &luav3.LuaPerRoute_SourceCode{SourceCode: inline(code)}}}}
}

// luaText returns a script as the text between quotes. It escapes every byte except harmless ones: a
// script could otherwise end the text and run outside its guard.
func luaText(script string) string {
	var b strings.Builder
	for _, c := range []byte(script) {
		if c == ' ' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '=' || c == ':' || c == '.' || c == ',' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "\\%03d", c)
	}
	return b.String()
}
