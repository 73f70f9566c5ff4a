// Package headers is route_filter_headers: it changes headers of requests and responses.
package headers

import (
	"fmt"
	"slices"
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name                    = "envoy.filters.http.header_mutation"
	key  seam.Key[*Changes] = "headers"
)

// Changes are changes of request and response headers, in the order in which they are made. Those of a host are made
// before those of its routes.
type Changes struct {
	Request  []ir.HeaderChange `json:"request,omitempty"`
	Response []ir.HeaderChange `json:"response,omitempty"`
}

// Filter returns the filter.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterHeaders, Config: seam.Adds(key, combine),
		Name: name, Listener: both, Disabled: true,
		Host: seam.OfHost(key, messages), Route: seam.OfRoute(key, messages),
		Describe: describe, Change: change,
	}
}

// combine returns the changes of both.
func combine(before *Changes, f *model.HeadersFilter, at seam.Place) (*Changes, error) {
	out := &Changes{}
	if before != nil {
		*out = *before
	}
	for _, name := range f.Lists {
		l := at.List(name)
		if l == nil {
			return nil, fmt.Errorf("list %s does not exist, or is not one of headers", name)
		}
		out.add(l.Template, l.Request, l.Response)
	}
	out.add(f.Template, f.Request, f.Response)
	return out, nil
}

func (c *Changes) add(template bool, toRequest, toResponse model.HeaderChanges) {
	request, response := seam.ChangesOf(toRequest), seam.ChangesOf(toResponse)
	if template {
		request, response = templates(request, "REQ"), templates(response, "RESP")
	}
	c.Request, c.Response = slices.Concat(c.Request, request), slices.Concat(c.Response, response)
}

// templates returns changes whose values are templates. command is the one that copies a header of the changed message.
func templates(changes []ir.HeaderChange, command string) []ir.HeaderChange {
	list := make([]ir.HeaderChange, 0, len(changes))
	for _, c := range changes {
		// Envoy leaves a header as it is if its new value is empty: a client could then choose it.
		if c.Action == ir.HeaderSet && !model.TemplateCopies(c.Value, command, c.Name) {
			list = append(list, ir.HeaderChange{Action: ir.HeaderRemove, Name: c.Name})
		}
		if c.Action != ir.HeaderRemove {
			c.Value, c.Template = model.BoundedTemplate(c.Value), true
		}
		list = append(list, c)
	}
	return list
}

// both makes the changes of the host, then those of the route.
func both(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &headermutationv3.HeaderMutation{MostSpecificHeaderMutationsWins: true}}}
}

func messages(c *Changes) ([]seam.Message, error) {
	out := &headermutationv3.Mutations{
		RequestMutations: mutations(c.Request), ResponseMutations: mutations(c.Response),
	}
	return []seam.Message{{Name: name, Config: &headermutationv3.HeaderMutationPerRoute{Mutations: out}}}, nil
}

func mutations(changes []ir.HeaderChange) []*mutationv3.HeaderMutation {
	var list []*mutationv3.HeaderMutation
	for _, c := range changes {
		if c.Action == ir.HeaderRemove {
			list = append(list, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: c.Name}})
			continue
		}
		list = append(list, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: seam.HeaderOption(c)}})
	}
	return list
}

// describe says which headers change, in the order of the filter.
func describe(r seam.Request) (string, error) {
	request, response, err := mutationsOf(r)
	if err != nil {
		return "", err
	}
	var parts []string
	if len(request) > 0 {
		parts = append(parts, "of the request "+list(request))
	}
	if len(response) > 0 {
		parts = append(parts, "of the answer "+list(response))
	}
	return "changes headers: " + strings.Join(parts, "; "), nil
}

// mutationsOf returns the changes of the service and then those of the route.
func mutationsOf(r seam.Request) (request, response []*mutationv3.HeaderMutation, err error) {
	for _, config := range []*anypb.Any{
		r.VirtualHost.GetTypedPerFilterConfig()[name], r.Route.GetTypedPerFilterConfig()[name],
	} {
		if config == nil {
			continue
		}
		var m headermutationv3.HeaderMutationPerRoute
		if err := config.UnmarshalTo(&m); err != nil {
			return nil, nil, fmt.Errorf("decoding the changes of headers: %w", err)
		}
		request = append(request, m.GetMutations().GetRequestMutations()...)
		response = append(response, m.GetMutations().GetResponseMutations()...)
	}
	return request, response, nil
}

func list(mutations []*mutationv3.HeaderMutation) string {
	var list []string
	for _, m := range mutations {
		set := m.GetAppend()
		switch {
		case set == nil:
			list = append(list, "removes "+m.GetRemove())
		case set.GetAppendAction() == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD:
			list = append(list, "sets "+set.GetHeader().GetKey())
		default:
			list = append(list, "adds "+set.GetHeader().GetKey())
		}
	}
	return strings.Join(list, ", ")
}

func change(r seam.Request) (seam.Request, error) {
	request, _, err := mutationsOf(r)
	return r.Mutate(request), err
}
