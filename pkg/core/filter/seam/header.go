package seam

import (
	"math"
	"slices"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// RemoveHeader removes a header.
func RemoveHeader(name string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: name}}
}

// RemoveHeaders removes several headers.
func RemoveHeaders(names ...string) []*mutationv3.HeaderMutation {
	var list []*mutationv3.HeaderMutation
	for _, name := range names {
		list = append(list, RemoveHeader(name))
	}
	return list
}

// WithoutNames returns the names that are not among others.
func WithoutNames(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// RequestMutations are the changes of requests by a filter; nothing if the list is empty.
func RequestMutations(filter string, list []*mutationv3.HeaderMutation) []Message {
	if len(list) == 0 {
		return nil
	}
	return []Message{{Name: filter, Config: &headermutationv3.HeaderMutationPerRoute{
		Mutations: &headermutationv3.Mutations{RequestMutations: list},
	}}}
}

// RemovedHeaders returns the headers that a filter removes from a request, for the host and then for the route: Envoy
// applies both messages.
func RemovedHeaders(name string, r Request) ([]string, error) {
	var names []string
	for _, of := range []Request{{VirtualHost: r.VirtualHost}, {Route: r.Route}} {
		message, err := MessageOf(name, of, &headermutationv3.HeaderMutationPerRoute{})
		if err != nil {
			return names, err
		}
		for _, m := range message.GetMutations().GetRequestMutations() {
			if name := m.GetRemove(); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// HeaderMatcher matches a header.
func HeaderMatcher(v ir.ValueMatch) *routev3.HeaderMatcher {
	out := &routev3.HeaderMatcher{Name: v.Name, InvertMatch: v.Invert}
	if m := StringMatcher(v); m != nil {
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_StringMatch{StringMatch: m}
	} else if v.Above > 0 {
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_RangeMatch{RangeMatch: &typev3.Int64Range{
			Start: int64(v.Above) + 1, End: math.MaxInt64,
		}}
	} else {
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}
	}
	return out
}

// StringMatcher returns nil for a value that only needs to be present.
func StringMatcher(v ir.ValueMatch) *matcherv3.StringMatcher {
	switch {
	case v.Exact != "":
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: v.Exact}}
	case v.Prefix != "":
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: v.Prefix}}
	case v.Regex != "":
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
			SafeRegex: &matcherv3.RegexMatcher{Regex: v.Regex},
		}}
	}
	return nil
}
