package explain

import (
	"fmt"
	"slices"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// verdict is the value of a condition: no, unknown or yes, in this order.
type verdict int

const (
	no verdict = iota
	unknown
	yes
)

func verdictOf(b bool) verdict {
	if b {
		return yes
	}
	return no
}

// caller is a request with the claims of its sender.
type caller struct {
	subject
	claims map[string]any
	// known means that the claims are known, and not in a session that only Envoy can
	// read.
	known bool
}

// is reports whether a principal of an RBAC policy matches the caller.
func (c caller) is(p *rbacconfigv3.Principal) (verdict, error) {
	switch id := p.GetIdentifier().(type) {
	case *rbacconfigv3.Principal_Any:
		return verdictOf(id.Any), nil
	case *rbacconfigv3.Principal_NotId:
		v, err := c.is(id.NotId)
		return yes - v, err
	case *rbacconfigv3.Principal_AndIds:
		return all(id.AndIds.GetIds(), c.is)
	case *rbacconfigv3.Principal_SourcedMetadata:
		return c.has(id.SourcedMetadata.GetMetadataMatcher())
	}
	return no, fmt.Errorf("explaining a policy: principal %T is not known", p.GetIdentifier())
}

// all returns no if one of the conditions is false, and yes if all are true.
func all[T any](list []T, holds func(T) (verdict, error)) (verdict, error) {
	out := yes
	for _, one := range list {
		v, err := holds(one)
		if err != nil {
			return no, err
		}
		out = min(out, v)
	}
	return out, nil
}

// has reports whether a claim has one of the values in a matcher.
func (c caller) has(m *matcherv3.MetadataMatcher) (verdict, error) {
	if m.GetFilter() != jwtFilter || len(m.GetPath()) < 2 {
		return no, fmt.Errorf("explaining a policy: metadata of %q is not known", m.GetFilter())
	}
	if !c.known {
		return unknown, nil
	}
	var value any = c.claims
	for _, step := range m.GetPath()[1:] {
		object, _ := value.(map[string]any)
		value = object[step.GetKey()]
	}
	holds := slices.ContainsFunc(m.GetValue().GetOrMatch().GetValueMatchers(), func(v *matcherv3.ValueMatcher) bool { return matchesValue(v, value) })
	return verdictOf(holds), nil
}

// matchesValue compares a string, or each element of a list.
func matchesValue(m *matcherv3.ValueMatcher, value any) bool {
	if one := m.GetListMatch().GetOneOf(); one != nil {
		list, _ := value.([]any)
		return slices.ContainsFunc(list, func(v any) bool { return matchesValue(one, v) })
	}
	text, ok := value.(string)
	return ok && m.GetStringMatch() != nil && text == m.GetStringMatch().GetExact()
}
