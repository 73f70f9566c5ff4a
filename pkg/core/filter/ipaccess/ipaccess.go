// Package ipaccess is vh_filter_ipaccess: it allows some client addresses and refuses others.
package ipaccess

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name = "envoy.filters.http.rbac/ip"
	// policy is the name of the policy in refusals.
	policy                   = "address_refused"
	key    seam.Key[*Access] = "ipAccess"
)

const refused = "requests from this address are not allowed here\n"

// Access sets which client addresses are allowed. An address is refused if a range of Deny contains it, if one of the
// Allow lists has no range that does, or if one of Located refuses it.
type Access struct {
	// Allow has one list for each filter that sets one.
	Allow [][]netip.Prefix `json:"allow,omitempty"`
	Deny  []netip.Prefix   `json:"deny,omitempty"`
	// Located has the lists of each filter that names countries or networks.
	Located []*Located `json:"located,omitempty"`
}

// Filter returns the filter.
func Filter() seam.Filter {
	config := seam.Adds(key, combine)
	config.Needs = needs
	return seam.Filter{
		Type: model.FilterIPAccess, Config: config,
		Name: name, Listener: nobody, Disabled: true,
		Host: seam.OfHost(key, messages), Route: seam.OfRoute(key, messages),
		Refuses: map[string]string{seam.Denied(policy): model.FilterIPAccess},
		Replies: seam.ReplyTo(http.StatusForbidden, seam.Denied(policy), http.StatusForbidden, refused),
		Refuse:  refuse, Describe: describe,
	}
}

// combine returns the lists of both.
func combine(before *Access, f *model.IPAccessFilter, _ seam.Place) (*Access, error) {
	if before == nil {
		before = &Access{}
	}
	both := &Access{Allow: before.Allow, Deny: seam.Ranges(before.Deny, f.Deny), Located: before.Located}
	if l := locatedBy(f); l != nil {
		both.Located = append(slices.Clone(before.Located), l)
	} else if f.Allow != nil {
		both.Allow = append(slices.Clone(before.Allow), seam.Ranges(nil, f.Allow))
	}
	return both, nil
}

// nobody refuses every request.
func nobody(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &rbacv3.RBAC{Rules: seam.RefuseAll(policy)}}}
}

// messages check one list after the other. A tree of ranges costs the same for few ranges and for many; rules would be
// compared one by one.
func messages(a *Access) ([]seam.Message, error) {
	var m matchers
	refuse := m.action(policy, rbacconfigv3.RBAC_DENY)
	next := m.check(a.Located, m.action("address_allowed", rbacconfigv3.RBAC_ALLOW), refuse)
	for _, list := range slices.Backward(a.Allow) {
		next = m.inRanges(list, next, refuse)
	}
	next = m.inRanges(a.Deny, refuse, next)
	// The outermost part of a matcher cannot have an action.
	matcher := next.GetMatcher()
	if matcher == nil {
		matcher = &xdsmatcherv3.Matcher{OnNoMatch: next}
	}
	return []seam.Message{{Name: name, Config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Matcher: matcher}}}}, m.err
}

// matchers builds the parts of a matcher. err is the first error.
type matchers struct{ err error }

func (m *matchers) extension(name string, c seam.Proto) *xdscorev3.TypedExtensionConfig {
	packed, err := seam.Pack(c)
	if m.err == nil {
		m.err = err
	}
	return &xdscorev3.TypedExtensionConfig{Name: name, TypedConfig: packed}
}

// action is a matcher's final action.
func (m *matchers) action(name string, action rbacconfigv3.RBAC_Action) *xdsmatcherv3.Matcher_OnMatch {
	return &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{
		Action: m.extension("envoy.filters.rbac.action", &rbacconfigv3.Action{Name: name, Action: action}),
	}}
}

// inRanges matches a client's address in one of the ranges.
func (m *matchers) inRanges(
	list []netip.Prefix, then, otherwise *xdsmatcherv3.Matcher_OnMatch,
) *xdsmatcherv3.Matcher_OnMatch {
	if len(list) == 0 {
		return otherwise
	}
	var ranges []*xdscorev3.CidrRange
	for _, p := range list {
		for _, form := range seam.FormsOf(p) {
			ranges = append(ranges, cidrRange(form))
		}
	}
	tree := &xdsmatcherv3.IPMatcher{
		RangeMatchers: []*xdsmatcherv3.IPMatcher_IPRangeMatcher{{Ranges: ranges, OnMatch: then}},
	}
	return &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Matcher{Matcher: &xdsmatcherv3.Matcher{
		OnNoMatch: otherwise, MatcherType: &xdsmatcherv3.Matcher_MatcherTree_{MatcherTree: &xdsmatcherv3.Matcher_MatcherTree{
			Input: m.extension("envoy.matching.inputs.source_ip", &networkv3.SourceIPInput{}),
			TreeType: &xdsmatcherv3.Matcher_MatcherTree_CustomMatch{
				CustomMatch: m.extension("envoy.matching.custom_matchers.trie_matcher", tree),
			},
		}},
	}}}
}

func coreRange(p netip.Prefix) *corev3.CidrRange {
	return &corev3.CidrRange{
		AddressPrefix: p.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(p.Bits())), //nolint:gosec // at most 128
	}
}

func cidrRange(p netip.Prefix) *xdscorev3.CidrRange {
	return &xdscorev3.CidrRange{
		AddressPrefix: p.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(p.Bits())), //nolint:gosec // at most 128
	}
}

func refuse(r seam.Request) (*seam.Refusal, error) {
	v, why, err := isRefused(r)
	if err != nil || v == no {
		return nil, err
	}
	if v == depends {
		r.Step("filter", fmt.Sprintf("whether a vh_filter_ipaccess allows %s %s; the next steps are for a request that it allows",
			r.Client, why))
		return nil, nil
	}
	return &seam.Refusal{
		Code: "address_refused", Message: fmt.Sprintf("a vh_filter_ipaccess does not allow %s: it %s", r.Client, why),
		Details: seam.Denied(policy), Status: http.StatusForbidden, Body: seam.DeniedBody,
	}, nil
}

func describe(r seam.Request) (string, error) {
	v, why, err := isRefused(r)
	if v == depends {
		return fmt.Sprintf("whether it allows %s %s", r.Client, why), err
	}
	return fmt.Sprintf("allows %s: it %s", r.Client, why), err
}

// isRefused reports whether the lists refuse the client, and which range or what else decides.
func isRefused(r seam.Request) (v verdict, why string, err error) {
	message, err := seam.MessageOf(name, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return yes, "", err
	}
	client, err := netip.ParseAddr(r.Client)
	if err != nil {
		return yes, "", fmt.Errorf("explaining filter %q: %w", name, err)
	}
	where, err := ask(r, client)
	if err != nil {
		return yes, "", err
	}
	for matcher := message.GetRbac().GetMatcher(); matcher != nil; {
		var then *xdsmatcherv3.Matcher_OnMatch
		if matcher.GetMatcherList() != nil {
			var v verdict
			if then, v, err = where.choose(matcher); err == nil && v == depends {
				return depends, where.openQuestion(), nil
			}
			if told := where.why(); told != "" {
				why = told
			}
		} else {
			var in string
			then, in, err = choose(matcher, client)
			if why = "is in " + in; in == "" {
				why = "is in none of the ranges"
			}
		}
		if err != nil {
			return yes, "", err
		}
		if packed := then.GetAction().GetTypedConfig(); packed != nil {
			var action rbacconfigv3.Action
			err := packed.UnmarshalTo(&action)
			if action.GetAction() == rbacconfigv3.RBAC_ALLOW {
				return no, why, err
			}
			return yes, why, err
		}
		matcher = then.GetMatcher()
	}
	return yes, "", fmt.Errorf("explaining filter %q: its message decides nothing", name)
}

// choose returns the action of a matcher for an address, and the range that contains the address, if any.
func choose(m *xdsmatcherv3.Matcher, client netip.Addr) (then *xdsmatcherv3.Matcher_OnMatch, in string, err error) {
	custom := m.GetMatcherTree().GetCustomMatch()
	if custom == nil {
		return m.GetOnNoMatch(), "", nil
	}
	var tree xdsmatcherv3.IPMatcher
	if err := custom.GetTypedConfig().UnmarshalTo(&tree); err != nil {
		return nil, "", fmt.Errorf("decoding filter %q: %w", name, err)
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
