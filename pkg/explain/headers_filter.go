package explain

import (
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

const headerFilter = "envoy.filters.http.header_mutation"

// describeHeaders describes which headers change, the service's changes before
// those of the route, in the order of the filter.
func (f *Filter) describeHeaders(p passed) error {
	var request, response []string
	for _, config := range []*anypb.Any{p.vh.GetTypedPerFilterConfig()[headerFilter], p.route.GetTypedPerFilterConfig()[headerFilter]} {
		changes, err := readHeaderChanges(config)
		if err != nil {
			return err
		}
		request = append(request, headerChanges(changes.GetMutations().GetRequestMutations())...)
		response = append(response, headerChanges(changes.GetMutations().GetResponseMutations())...)
	}
	var parts []string
	if len(request) > 0 {
		parts = append(parts, "of the request "+strings.Join(request, ", "))
	}
	if len(response) > 0 {
		parts = append(parts, "of the answer "+strings.Join(response, ", "))
	}
	f.Message = "changes headers: " + strings.Join(parts, "; ")
	return nil
}

func headerChanges(mutations []*mutationv3.HeaderMutation) []string {
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
	return list
}
