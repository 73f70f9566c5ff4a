// Package lua is http_filter_lua: it runs a script for requests and responses, in a guard.
package lua

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const key seam.Key[*Script] = "lua"

// guard wraps a script. It hides files, processes, the rest of Lua and all of Envoy's API that leads out of the route,
// stops a script that takes too long, and answers 503 if it fails. Envoy alone would allow the request.
//
//go:embed guard.lua
var guard string

// Script is a script for requests and responses.
type Script struct {
	Script string `json:"script"`
	// Calls are the clusters that the script may call, by the name of their upstream. They are Asked clusters.
	Calls map[string]string `json:"calls,omitempty"`
}

// Filter returns the filter. A route's script replaces its service's.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterLua, Config: seam.Hooks(addToHost, addToRoute),
		Name: seam.LuaFilter, Listener: refuseAll, Disabled: true,
		Host: seam.OfHost(key, messages), Route: seam.OfRoute(key, messages), Foreign: true,
		Refuses: map[string]string{"lua_": model.FilterLua},
	}
}

func addToHost(h *ir.Host, f *model.LuaFilter, at seam.Place) error {
	s, asked, err := scriptOf(f, h.Asked, at)
	if err == nil {
		h.Filters, h.Asked = key.In(h.Filters, s), asked
	}
	return err
}

func addToRoute(r *ir.Route, f *model.LuaFilter, at seam.Place) error {
	s, asked, err := scriptOf(f, r.Asked, at)
	if err == nil {
		r.Filters, r.Asked = key.In(r.Filters, s), asked
	}
	return err
}

// scriptOf compiles a filter and adds the clusters that its script may call to asked. It refuses code if the operator
// has not enabled scripts.
func scriptOf(f *model.LuaFilter, asked []*ir.Cluster, at seam.Place) (*Script, []*ir.Cluster, error) {
	if !at.Lua {
		return nil, nil, errors.New("the gateway runs no scripts without --allow-lua")
	}
	out := &Script{Script: f.Script}
	for _, upstream := range f.Upstreams {
		c, err := at.Server(upstream, false)
		if err != nil {
			return nil, nil, err
		}
		if out.Calls == nil {
			out.Calls = map[string]string{}
		}
		out.Calls[upstream], asked = c.Name, ir.WithCluster(asked, c)
	}
	return out, asked, nil
}

// refuseAll refuses every request. The route of a request stays the one whose filters it has passed, whatever headers a
// script changes: Envoy would choose another one after each change.
func refuseAll(ir.Listener) []seam.Message {
	return []seam.Message{{Name: seam.LuaFilter, Config: &luav3.Lua{
		DefaultSourceCode: seam.Inline(`function envoy_on_request(handle) handle:respond({[":status"] = "503"}, "") end`),
		ClearRouteCache:   wrapperspb.Bool(false),
	}}}
}

func messages(s *Script) ([]seam.Message, error) {
	var calls strings.Builder
	for _, upstream := range slices.Sorted(maps.Keys(s.Calls)) {
		fmt.Fprintf(&calls, `["%s"]="%s";`, seam.LuaText(upstream), seam.LuaText(s.Calls[upstream]))
	}
	code := strings.NewReplacer("@SCRIPT@", seam.LuaText(s.Script), "@CALLS@", calls.String()).Replace(guard)
	return []seam.Message{{Name: seam.LuaFilter, Config: &luav3.LuaPerRoute{
		Override: &luav3.LuaPerRoute_SourceCode{SourceCode: seam.Inline(code)},
	}}}, nil
}
