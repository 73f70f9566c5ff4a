package translate

import (
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// HeaderFilter is the name of the filter that makes the users' header changes.
const HeaderFilter = "envoy.filters.http.header_mutation"

// headerFilter makes the changes of the host, then those of the route.
func headerFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: HeaderFilter, config: &headermutationv3.HeaderMutation{MostSpecificHeaderMutationsWins: true}}}
}

func headersOfHost(h *ir.Host) ([]filterConfig, error) { return headerMutations(h.Headers), nil }

func headersOfRoute(r *ir.Route) ([]filterConfig, error) { return headerMutations(r.Headers), nil }

func headerMutations(h *ir.Headers) []filterConfig {
	if h == nil {
		return nil
	}
	return []filterConfig{{name: HeaderFilter, config: &headermutationv3.HeaderMutationPerRoute{Mutations: &headermutationv3.Mutations{
		RequestMutations: mutations(h.Request), ResponseMutations: mutations(h.Response),
	}}}}
}

func mutations(changes []ir.HeaderChange) []*mutationv3.HeaderMutation {
	var list []*mutationv3.HeaderMutation
	for _, c := range changes {
		if c.Action == ir.HeaderRemove {
			list = append(list, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: c.Name}})
			continue
		}
		action := corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
		if c.Action == ir.HeaderAdd {
			action = corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
		}
		value := c.Value
		if !c.Template { // Envoy reads text between percent signs as a command.
			value = strings.ReplaceAll(value, "%", "%%")
		}
		list = append(list, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
			Header: &corev3.HeaderValue{Key: c.Name, Value: value}, AppendAction: action,
		}}})
	}
	return list
}
