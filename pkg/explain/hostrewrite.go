package explain

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
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
	changed := maps.Clone(s.headers)
	for _, config := range []*anypb.Any{vh.GetTypedPerFilterConfig()[headerFilter], r.GetTypedPerFilterConfig()[headerFilter]} {
		changes, err := readHeaderChanges(config)
		if err != nil {
			return "", err
		}
		for _, m := range changes.GetMutations().GetRequestMutations() {
			changed.change(m, s.client)
		}
	}
	return cmp.Or(changed[name]...), nil
}

// change makes a change that does not depend on what only Envoy knows. An empty value changes nothing.
func (h headers) change(m *mutationv3.HeaderMutation, client string) {
	delete(h, m.GetRemove())
	name, value := m.GetAppend().GetHeader().GetKey(), h.expand(m.GetAppend().GetHeader().GetValue(), client)
	switch {
	case value == "":
	case m.GetAppend().GetAppendAction() == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD:
		h[name] = []string{value}
	default:
		h[name] = append(slices.Clip(h[name]), value)
	}
}

// expand returns the value of a template (Envoy's SubstitutionFormatter). A command whose value only Envoy knows stays.
func (h headers) expand(template, client string) string {
	command := regexp.MustCompile(`%%|%REQ\(([^()?]*)\??([^()?]*)\):([0-9]+)%|%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%`)
	return command.ReplaceAllStringFunc(template, func(whole string) string {
		switch m := command.FindStringSubmatch(whole); {
		case whole == "%%":
			return "%"
		case m[1] == "":
			return client
		default:
			values, there := h[lowerASCII(m[1])]
			if !there {
				values = h[lowerASCII(m[2])]
			}
			value := strings.Join(values[:min(1, len(values))], "")
			if most, err := strconv.Atoi(m[3]); err == nil && most < len(value) {
				value = value[:most]
			}
			return value
		}
	})
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
