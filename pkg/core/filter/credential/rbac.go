package credential

import (
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// refuseAll is a filter of a listener that refuses every request by a policy.
func refuseAll(filter, policy string) func(ir.Listener) []seam.Message {
	return func(ir.Listener) []seam.Message {
		return []seam.Message{{Name: filter, Config: &rbacv3.RBAC{Rules: seam.RefuseAll(policy)}}}
	}
}

// refuseUnless is a message that refuses requests which a principal does not match. The name of the policy is in the
// refusal.
func refuseUnless(filter, policy string, p *rbacconfigv3.Principal) seam.Message {
	rules := seam.RefuseAll(policy)
	rules.GetPolicies()[policy].Principals = []*rbacconfigv3.Principal{notID(p)}
	return seam.Message{Name: filter, Config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: rules}}}
}

func notID(p *rbacconfigv3.Principal) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_NotId{NotId: p}}
}

func orIDs(list []*rbacconfigv3.Principal) *rbacconfigv3.Principal {
	if len(list) == 1 {
		return list[0]
	}
	return orAll(list)
}

// andIDs matches a request that all of list match. An empty list matches every
// request.
func andIDs(list []*rbacconfigv3.Principal) *rbacconfigv3.Principal {
	switch len(list) {
	case 0:
		return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_Any{Any: true}}
	case 1:
		return list[0]
	}
	return andAll(list)
}

func orAll(list []*rbacconfigv3.Principal) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_OrIds{
		OrIds: &rbacconfigv3.Principal_Set{Ids: list},
	}}
}

func andAll(list []*rbacconfigv3.Principal) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_AndIds{
		AndIds: &rbacconfigv3.Principal_Set{Ids: list},
	}}
}

// metadataPrincipal matches what a filter has written into the request's metadata.
func metadataPrincipal(filter string, path []string, value *matcherv3.ValueMatcher) *rbacconfigv3.Principal {
	m := &matcherv3.MetadataMatcher{Filter: filter, Value: value}
	for _, key := range path {
		m.Path = append(m.Path, &matcherv3.MetadataMatcher_PathSegment{
			Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: key},
		})
	}
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_SourcedMetadata{
		SourcedMetadata: &rbacconfigv3.SourcedMetadata{MetadataMatcher: m},
	}}
}

func text(m *matcherv3.StringMatcher) *matcherv3.ValueMatcher {
	return &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{StringMatch: m}}
}

// or repeats a single matcher, since Envoy requires at least two.
func or(m *matcherv3.OrMatcher) *matcherv3.OrMatcher {
	if len(m.GetValueMatchers()) == 1 {
		m.ValueMatchers = append(m.ValueMatchers, m.GetValueMatchers()[0])
	}
	return m
}
