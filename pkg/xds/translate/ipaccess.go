package translate

import (
	"net/http"
	"net/netip"
	"slices"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// IPFilter is the name of the filter that checks the client's address.
const IPFilter = "envoy.filters.http.rbac/ip"

// addressRefused is the name of the filter's policy in refusals.
const addressRefused = "address_refused"

// ipFilter refuses every request.
func ipFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: IPFilter, config: &rbacv3.RBAC{Rules: refuseAll(addressRefused)}}}
}

func ipOfHost(h *ir.Host) ([]filterConfig, error) { return ipAccess(h.IPAccess) }

func ipOfRoute(r *ir.Route) ([]filterConfig, error) { return ipAccess(r.IPAccess) }

// ipAccess checks one list after the other. A tree of ranges costs the same for few ranges
// and for many; rules would be compared one by one.
func ipAccess(a *ir.IPAccess) ([]filterConfig, error) {
	if a == nil {
		return nil, nil
	}
	var m matchers
	refuse := m.access(addressRefused, rbacconfigv3.RBAC_DENY)
	next := m.access("address_allowed", rbacconfigv3.RBAC_ALLOW)
	for _, list := range slices.Backward(a.Allow) {
		next = m.inRanges(list, next, refuse)
	}
	next = m.inRanges(a.Deny, refuse, next)
	// The outermost part of a matcher cannot have an action.
	matcher := next.GetMatcher()
	if matcher == nil {
		matcher = &xdsmatcherv3.Matcher{OnNoMatch: next}
	}
	return []filterConfig{{name: IPFilter, config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Matcher: matcher}}}}, m.err
}

// access is a matcher's final action.
func (m *matchers) access(name string, action rbacconfigv3.RBAC_Action) *xdsmatcherv3.Matcher_OnMatch {
	return &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{
		Action: m.checked("envoy.filters.rbac.action", &rbacconfigv3.Action{Name: name, Action: action}),
	}}
}

// inRanges matches a client's address in one of the ranges.
func (m *matchers) inRanges(list []netip.Prefix, then, otherwise *xdsmatcherv3.Matcher_OnMatch) *xdsmatcherv3.Matcher_OnMatch {
	if len(list) == 0 {
		return otherwise
	}
	var ranges []*xdscorev3.CidrRange
	for _, p := range list {
		for _, form := range formsOf(p) {
			ranges = append(ranges, cidrRange(form))
		}
	}
	return further(&xdsmatcherv3.Matcher{OnNoMatch: otherwise, MatcherType: &xdsmatcherv3.Matcher_MatcherTree_{
		MatcherTree: &xdsmatcherv3.Matcher_MatcherTree{
			Input: m.extension("envoy.matching.inputs.source_ip", &networkv3.SourceIPInput{}),
			TreeType: &xdsmatcherv3.Matcher_MatcherTree_CustomMatch{CustomMatch: m.checked("envoy.matching.custom_matchers.trie_matcher",
				&xdsmatcherv3.IPMatcher{RangeMatchers: []*xdsmatcherv3.IPMatcher_IPRangeMatcher{{Ranges: ranges, OnMatch: then}}})},
		},
	}})
}

// formsOf returns a range in each form that an address may have: proxies in front that listen on IPv6 write an IPv4
// address in its IPv6 form.
func formsOf(p netip.Prefix) []netip.Prefix {
	if !p.Addr().Is4() {
		return []netip.Prefix{p}
	}
	return []netip.Prefix{p, netip.PrefixFrom(netip.AddrFrom16(p.Addr().As16()), p.Bits()+96)}
}

// checked packs a message that has constraints.
func (m *matchers) checked(name string, c message) *xdscorev3.TypedExtensionConfig {
	packed, err := pack(c)
	if m.err == nil {
		m.err = err
	}
	return &xdscorev3.TypedExtensionConfig{Name: name, TypedConfig: packed}
}

func cidrRange(p netip.Prefix) *xdscorev3.CidrRange {
	return &xdscorev3.CidrRange{AddressPrefix: p.Addr().String(), PrefixLen: u32(p.Bits())}
}

func ipReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	m, err := refusalReply(addressRefused, http.StatusForbidden, "requests from this address are not allowed here\n")
	return []*hcmv3.ResponseMapper{m}, err
}
