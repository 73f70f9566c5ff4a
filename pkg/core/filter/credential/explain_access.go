package credential

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

func refuseByRules(r seam.Request) (*seam.Refusal, error) {
	message, err := seam.MessageOf(accessFilter, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return nil, err
	}
	who, err := callerOf(r)
	if err != nil {
		return nil, err
	}
	refused := no
	for _, principal := range message.GetRbac().GetRules().GetPolicies()[accessRefused].GetPrincipals() {
		v, err := who.is(principal)
		if err != nil {
			return nil, err
		}
		refused = max(refused, v)
	}
	switch refused {
	case yes:
		return &seam.Refusal{
			Code: "access_refused", Details: seam.Denied(accessRefused), Status: http.StatusForbidden, Body: seam.DeniedBody,
			Message: fmt.Sprintf("a vh_filter_rbac does not allow %s %s", r.Header(seam.Method), r.Path),
		}, nil
	case unknown:
		r.Step("access", "whether a vh_filter_rbac allows the request depends on the claims of the session; the next steps "+
			"assume that it does")
	default:
		r.Step("access", "a vh_filter_rbac allows the request")
	}
	return nil, nil
}

// callerOf returns the request with the client of its API key and the claims of its valid token. The claims of a
// session are unknown. Without a token or a session, there are no claims.
func callerOf(r seam.Request) (who caller, err error) {
	who.Request = r
	if who.client, err = clientOf(r); err != nil {
		return who, err
	}
	if who.consumer, err = consumerOf(r); err != nil {
		return who, err
	}
	if !r.Passes(seam.TokenFilter) {
		who.known = true
		return who, nil
	}
	if place := tokenPlaceOf(r); place != nil {
		who.claims, _ = claimsOf(place.find(r))
		who.known = true
	}
	return who, nil
}

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

// caller is a request with what is known of its sender.
type caller struct {
	seam.Request
	// client is the client of its API key.
	client string
	claims map[string]any
	// known means that the claims are known, and not in a session that only Envoy can
	// read.
	known bool
	// consumer is who it is.
	consumer foundConsumer
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
		holds, _, err := c.CheckHeader(id.Header)
		return verdictOf(holds), err
	case *rbacconfigv3.Principal_UrlPath:
		return verdictOf(matchesPath(id.UrlPath.GetPath(), c.Path)), nil
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
	client, err := netip.ParseAddr(c.Client)
	if err != nil {
		return no, fmt.Errorf("explaining a policy: %w", err)
	}
	first, err := netip.ParseAddr(r.GetAddressPrefix())
	if err != nil {
		return no, fmt.Errorf("explaining a policy: %w", err)
	}
	return verdictOf(netip.PrefixFrom(first, int(r.GetPrefixLen().GetValue())).Contains(client)), nil
}

// has reports whether the client of an API key is one of those in a matcher, or a claim has one of the values in a
// matcher.
func (c caller) has(m *matcherv3.MetadataMatcher) (verdict, error) {
	if m.GetFilter() == seam.KeyFilter || m.GetFilter() == AnyKeyFilter {
		return verdictOf(c.client != "" && isClient(c.client, m.GetValue())), nil
	}
	if m.GetFilter() == seam.Consumer {
		return c.consumer.is(m), nil
	}
	if m.GetFilter() == seam.AddressLists {
		noted, err := c.NotedOf(m)
		return verdictOf(noted), err
	}
	if m.GetFilter() != seam.TokenFilter || len(m.GetPath()) < 2 {
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
	if m.GetValue().GetPresentMatch() {
		return verdictOf(value != nil), nil
	}
	either := m.GetValue().GetOrMatch().GetValueMatchers()
	if either == nil {
		either = []*matcherv3.ValueMatcher{m.GetValue()}
	}
	return verdictOf(slices.ContainsFunc(either, func(v *matcherv3.ValueMatcher) bool { return matchesValue(v, value) })), nil
}

// matchesValue compares a string, or each element of a list.
func matchesValue(m *matcherv3.ValueMatcher, value any) bool {
	if one := m.GetListMatch().GetOneOf(); one != nil {
		list, _ := value.([]any)
		return slices.ContainsFunc(list, func(v any) bool { return matchesValue(one, v) })
	}
	text, ok := value.(string)
	if words := m.GetStringMatch().GetSafeRegex().GetRegex(); ok && words != "" {
		matches, err := regexp.MatchString(`^(?:`+words+`)$`, text)
		return err == nil && matches
	}
	return ok && m.GetStringMatch() != nil && text == m.GetStringMatch().GetExact()
}

func matchesPath(m *matcherv3.StringMatcher, path string) bool {
	exact, prefix := m.GetExact(), m.GetPrefix()
	if m.GetIgnoreCase() {
		exact, prefix, path = seam.LowerASCII(exact), seam.LowerASCII(prefix), seam.LowerASCII(path)
	}
	if exact != "" {
		return path == exact
	}
	return prefix != "" && strings.HasPrefix(path, prefix)
}
