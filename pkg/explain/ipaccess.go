package explain

import (
	"fmt"
	"net/netip"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// ipFilter checks the client's address.
const ipFilter = "envoy.filters.http.rbac/ip"

// passIPAccess reports whether the client's address is allowed. If not, it ends with the answer.
func (a *Answer) passIPAccess(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	f := findFilter(l, ipFilter)
	if f == nil || isOff(f, vh, r) {
		return true, nil
	}
	allowed, why, err := s.isAllowed(vh, r)
	if err != nil || allowed {
		return allowed, err
	}
	return false, a.endRefused(l, AddressRefused, AddressRefused, fmt.Sprintf("a vh_filter_ipaccess does not allow %s: it %s", s.client, why))
}

func (f *Filter) describeIPAccess(p passed) error {
	_, why, err := p.request.isAllowed(p.vh, p.route)
	f.Message = fmt.Sprintf("allows %s: it %s", p.request.client, why)
	return err
}

// isAllowed reports whether the lists allow the client, and which list decides.
func (s subject) isAllowed(vh *routev3.VirtualHost, r *routev3.Route) (allowed bool, why string, err error) {
	message, err := messageFor(ipFilter, vh, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return false, "", err
	}
	client, err := netip.ParseAddr(s.client)
	if err != nil {
		return false, "", fmt.Errorf("explaining filter %q: %w", ipFilter, err)
	}
	for matcher := message.GetRbac().GetMatcher(); matcher != nil; {
		then, in, err := chooseByAddress(matcher, client)
		if err != nil {
			return false, "", err
		}
		if why = "is in " + in; in == "" {
			why = "is in none of the ranges"
		}
		if packed := then.GetAction().GetTypedConfig(); packed != nil {
			var action rbacconfigv3.Action
			err := packed.UnmarshalTo(&action)
			return action.GetAction() == rbacconfigv3.RBAC_ALLOW, why, err
		}
		matcher = then.GetMatcher()
	}
	return false, "", fmt.Errorf("explaining filter %q: its message decides nothing", ipFilter)
}

// chooseByAddress returns the action of a matcher for an address, and the range that contains the
// address, if any.
func chooseByAddress(m *xdsmatcherv3.Matcher, client netip.Addr) (then *xdsmatcherv3.Matcher_OnMatch, in string, err error) {
	custom := m.GetMatcherTree().GetCustomMatch()
	if custom == nil {
		return m.GetOnNoMatch(), "", nil
	}
	var tree xdsmatcherv3.IPMatcher
	if err := custom.GetTypedConfig().UnmarshalTo(&tree); err != nil {
		return nil, "", fmt.Errorf("decoding filter %q: %w", ipFilter, err)
	}
	for _, list := range tree.GetRangeMatchers() {
		for _, c := range list.GetRanges() {
			if p, err := prefixOf(c); err == nil && p.Contains(client) {
				return list.GetOnMatch(), p.String(), nil
			}
		}
	}
	return m.GetOnNoMatch(), "", nil
}

func prefixOf(c *xdscorev3.CidrRange) (netip.Prefix, error) {
	a, err := netip.ParseAddr(c.GetAddressPrefix())
	return netip.PrefixFrom(a, int(c.GetPrefixLen().GetValue())), err
}
