// Package addresslist looks up which shared lists of addresses have a client, for the filters that compare it with them.
//
// Invariants: an Envoy gets each list once, apart from listeners and routes, so a change of a list changes neither. The
// script is the gateway's own, and nothing that an operator writes is code: names of lists have no quotes, and addresses
// are digits. What the script does not note is unknown, and refused.
package addresslist

import (
	_ "embed"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

//go:embed lookup.lua
var script string

// Filter returns the filter.
func Filter() seam.Filter {
	return seam.Filter{
		Name: seam.AddressFilter, Listener: nothing, Disabled: true,
		Host: seam.OfHost(seam.ListsKey, messages), Route: seam.OfRoute(seam.ListsKey, messages),
		Resources: resources, Describe: describe,
	}
}

// nothing notes nothing, so that all lists are unknown.
func nothing(ir.Listener) []seam.Message {
	return []seam.Message{{
		Name: seam.AddressFilter, Config: lua("function envoy_on_request(h) end\n"), Discovered: &luav3.Lua{},
	}}
}

// The route of a request stays the one whose filters it has passed.
func lua(source string) *luav3.Lua {
	return &luav3.Lua{DefaultSourceCode: seam.Inline(source), ClearRouteCache: wrapperspb.Bool(false)}
}

// resources returns the lists once for all listeners of a proxy.
func resources(l ir.Listener) (seam.Resources, error) {
	if l.TLS != nil {
		return seam.Resources{}, nil
	}
	all, err := Extension(l.AddressLists)
	return seam.Resources{Extensions: []*corev3.TypedExtensionConfig{all}}, err
}

// Extension returns the filter with lists.
func Extension(lists []ir.AddressList) (*corev3.TypedExtensionConfig, error) {
	packed, err := seam.Pack(lua("local lists = {\n" + seam.AddressLines(lists) + "}\n\n" + script))
	return &corev3.TypedExtensionConfig{Name: seam.AddressFilter, TypedConfig: packed}, err
}

func messages(names []string) ([]seam.Message, error) {
	return []seam.Message{{Name: seam.AddressFilter, Config: &luav3.LuaPerRoute{FilterContext: &structpb.Struct{
		Fields: map[string]*structpb.Value{seam.ListsField: structpb.NewStringValue(strings.Join(names, " "))},
	}}}}, nil
}

func describe(r seam.Request) (string, error) {
	message, err := seam.MessageOf(seam.AddressFilter, r, &luav3.LuaPerRoute{})
	if err != nil {
		return "", err
	}
	var found []string
	for _, name := range strings.Fields(message.GetFilterContext().GetFields()[seam.ListsField].GetStringValue()) {
		in, known, err := r.IsListed(name)
		switch {
		case err != nil:
			return "", err
		case !known:
			found = append(found, name+" is unknown to the Envoy")
		case in:
			found = append(found, name+" has it")
		default:
			found = append(found, name+" does not have it")
		}
	}
	return "looks up " + r.Client + " in lists of addresses: " + strings.Join(found, ", "), nil
}
