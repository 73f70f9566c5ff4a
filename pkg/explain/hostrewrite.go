package explain

import (
	"cmp"
	"fmt"
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// rewrittenHost returns the Host that the upstream receives
// (RouteEntryImplBase::finalizeHostHeader).
func rewrittenHost(s subject, vh *routev3.VirtualHost, r *routev3.Route) (string, error) {
	host := s.headers.get(authority)
	action := r.GetRoute()
	switch by := action.GetHostRewriteSpecifier().(type) {
	case nil:
		return host, nil
	case *routev3.RouteAction_HostRewriteLiteral:
		return cmp.Or(by.HostRewriteLiteral, host), nil
	case *routev3.RouteAction_HostRewriteHeader:
		value, err := headerAtRouter(s, vh, r, lowerASCII(by.HostRewriteHeader))
		return cmp.Or(value, host), err
	case *routev3.RouteAction_HostRewritePathRegex:
		return replaceAll(s.path, r.GetName(), by.HostRewritePathRegex)
	default:
		return "", fmt.Errorf("explaining route %q: rewrite of the host %T is not known", r.GetName(), by)
	}
}

// headerAtRouter returns the first value of a request header after the changes of the service and
// the route.
func headerAtRouter(s subject, vh *routev3.VirtualHost, r *routev3.Route, name string) (string, error) {
	values := s.headers[name]
	for _, config := range []*anypb.Any{vh.GetTypedPerFilterConfig()[headerFilter], r.GetTypedPerFilterConfig()[headerFilter]} {
		changes, err := readHeaderChanges(config)
		if err != nil {
			return "", err
		}
		for _, m := range changes.GetMutations().GetRequestMutations() {
			values = changedValues(values, m, name)
		}
	}
	if len(values) == 0 {
		return "", nil
	}
	return values[0], nil
}

// changedValues returns the values of the header called name after one change, which may be of
// another header.
func changedValues(values []string, m *mutationv3.HeaderMutation, name string) []string {
	set := m.GetAppend()
	switch {
	case m.GetRemove() == name:
		return nil
	case set.GetHeader().GetKey() != name:
		return values
	case set.GetAppendAction() == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD:
		values = nil
	}
	return append(values[:len(values):len(values)], strings.ReplaceAll(set.GetHeader().GetValue(), "%%", "%"))
}

func readHeaderChanges(config *anypb.Any) (*headermutationv3.HeaderMutationPerRoute, error) {
	changes := &headermutationv3.HeaderMutationPerRoute{}
	if config == nil {
		return changes, nil
	}
	if err := config.UnmarshalTo(changes); err != nil {
		return nil, fmt.Errorf("decoding the changes of headers: %w", err)
	}
	return changes, nil
}
