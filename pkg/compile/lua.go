package compile

import (
	"errors"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostLua(h *ir.Host, f *model.LuaFilter, at Place) (err error) {
	h.Lua, err = script(f, at)
	return err
}

func addRouteLua(r *ir.Route, f *model.LuaFilter, at Place) (err error) {
	r.Lua, err = script(f, at)
	return err
}

// script refuses code if the operator has not enabled scripts.
func script(f *model.LuaFilter, at Place) (*ir.Lua, error) {
	if !at.Lua {
		return nil, errors.New("the gateway runs no scripts without --allow-lua")
	}
	return &ir.Lua{Script: f.Script}, nil
}
