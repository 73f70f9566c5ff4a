package precheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// hooks are the functions of a script that Envoy calls.
func hooks() []string { return []string{"envoy_on_request", "envoy_on_response"} }

// script refuses a filter whose script would not run.
func (c checker) script(f *model.Filter) error {
	lua, is := f.Parse().Spec.(*model.LuaFilter)
	if !is {
		return nil
	}
	refuse := func(why, hint string) error {
		path := f.Key().Path()
		return &model.Error{Kind: model.Unworkable, Path: path, Message: path + " cannot work: " + why, Hint: hint}
	}
	if !c.rules.Lua {
		return refuse("the gateway runs no scripts",
			"start it with --allow-lua: whoever may write to the API can then run code in every Envoy")
	}
	chunk, err := parse.Parse(strings.NewReader(lua.Script), "script")
	if wrong, is := errors.AsType[*parse.Error](err); is && wrong.Pos.Line == parse.EOF {
		return refuse(fmt.Sprintf("its script ends too early, after %q", wrong.Token), "the language is Lua 5.1")
	} else if is {
		return refuse(fmt.Sprintf("its script has an error in line %d, at %q", wrong.Pos.Line, wrong.Token),
			"the language is Lua 5.1")
	}
	if err != nil {
		return refuse("its script cannot be read: "+err.Error(), "the language is Lua 5.1")
	}
	if !slices.ContainsFunc(chunk, definesHook) {
		return refuse("its script defines neither "+strings.Join(hooks(), " nor "),
			`such as function envoy_on_request(handle) handle:headers():add("x-team", "shop") end`)
	}
	return nil
}

// definesHook reports whether a statement defines one of the hooks as a global function.
func definesHook(s ast.Stmt) bool {
	var to []ast.Expr
	switch s := s.(type) {
	case *ast.FuncDefStmt:
		to = []ast.Expr{s.Name.Func}
	case *ast.AssignStmt:
		to = s.Lhs
	}
	return slices.ContainsFunc(to, func(e ast.Expr) bool {
		name, is := e.(*ast.IdentExpr)
		return is && slices.Contains(hooks(), name.Value)
	})
}
