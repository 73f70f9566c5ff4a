package compile

import (
	"errors"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostLua(h *ir.Host, f *model.LuaFilter, at Place) (err error) {
	h.Lua, h.Asked, err = script(f, h.Asked, at)
	return err
}

func addRouteLua(r *ir.Route, f *model.LuaFilter, at Place) (err error) {
	r.Lua, r.Asked, err = script(f, r.Asked, at)
	return err
}

// script compiles a filter and adds the clusters that its script may call to asked. It refuses code if the operator has
// not enabled scripts.
func script(f *model.LuaFilter, asked []*ir.Cluster, at Place) (*ir.Lua, []*ir.Cluster, error) {
	if !at.Lua {
		return nil, asked, errors.New("the gateway runs no scripts without --allow-lua")
	}
	out := &ir.Lua{Script: f.Script}
	for _, upstream := range f.Upstreams {
		c, err := askedCluster(upstream, false, at)
		if err != nil {
			return nil, asked, err
		}
		if out.Calls == nil {
			out.Calls = map[string]string{}
		}
		out.Calls[upstream], asked = c.Name, withAsked(asked, c)
	}
	return out, asked, nil
}
