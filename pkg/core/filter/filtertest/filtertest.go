// Package filtertest shows to the specs of a filter what it says of a request, from its own messages.
package filtertest

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// Request returns a request to http://h/ that passes a filter, with header lines such as "X-A: b". The host and the
// route have the messages of the filter for the values.
func Request(f seam.Filter, ofHost, ofRoute ir.Filters, method string, lines ...string) (seam.Request, error) {
	out := seam.Request{
		Headers: map[string][]string{seam.Authority: {"h"}, seam.Method: {method}}, Path: "/", Client: "192.0.2.7",
		VirtualHost: &routev3.VirtualHost{Name: "shop"}, Route: &routev3.Route{Name: "root"},
		On: &hcmv3.HttpFilter{Name: f.Name, Disabled: f.Disabled},
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		name = strings.ToLower(name)
		out.Headers[name] = append(out.Headers[name], value)
	}
	h, r := &ir.Host{Filters: ofHost}, &ir.Route{Filters: ofRoute, Forward: &ir.Forward{Filters: ofRoute}}
	var err error
	if out.VirtualHost.TypedPerFilterConfig, err = packed(h, f.Host); err != nil {
		return out, err
	}
	if out.Route.TypedPerFilterConfig, err = packed(r, f.Route); err != nil || f.ChangeHost == nil {
		return out, err
	}
	return out, f.ChangeHost(h, out.VirtualHost)
}

func packed[T any](of T, messages func(T) ([]seam.Message, error)) (map[string]*anypb.Any, error) {
	if messages == nil {
		return nil, nil
	}
	list, err := messages(of)
	if err != nil {
		return nil, err
	}
	all := map[string]*anypb.Any{}
	for _, m := range list {
		if all[m.Name], err = seam.Pack(m.Config); err != nil {
			return nil, err
		}
	}
	return all, nil
}
