package explain

import (
	"fmt"
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
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
	case *rbacconfigv3.Principal_OrIds:
		v, err := all(id.OrIds.GetIds(), func(one *rbacconfigv3.Principal) (verdict, error) {
			v, err := c.is(one)
			return yes - v, err
		})
		return yes - v, err
	case *rbacconfigv3.Principal_Header:
		check, err := c.checkHeader(id.Header)
		return verdictOf(check.Holds), err
	case *rbacconfigv3.Principal_UrlPath:
		return verdictOf(matchesPath(id.UrlPath.GetPath(), c.path)), nil
	case *rbacconfigv3.Principal_RemoteIp:
		return c.isIn(id.RemoteIp)
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

// isIn reports whether the address of the client is in a range.
func (c caller) isIn(r *corev3.CidrRange) (verdict, error) {
	client, err := netip.ParseAddr(c.client)
	if err != nil {
		return no, fmt.Errorf("explaining a policy: %w", err)
	}
	first, err := netip.ParseAddr(r.GetAddressPrefix())
	if err != nil {
		return no, fmt.Errorf("explaining a policy: %w", err)
	}
	return verdictOf(netip.PrefixFrom(first, int(r.GetPrefixLen().GetValue())).Contains(client)), nil
}

// has reports whether the client of an API key is one of those in a matcher, or a claim has one of the values in a matcher.
func (c caller) has(m *matcherv3.MetadataMatcher) (verdict, error) {
	if m.GetFilter() == keyFilter || m.GetFilter() == anyKeyFilter {
		return verdictOf(c.apiClient != "" && isClient(c.apiClient, m.GetValue())), nil
	}
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
