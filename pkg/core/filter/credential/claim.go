package credential

import (
	"maps"
	"slices"
	"strings"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// claimsFilter is the name of the filter that checks claims.
	claimsFilter = "envoy.filters.http.rbac/claims"
	// claimRefused is the policy that refuses tokens that lack a claim.
	claimRefused = "claim_refused"
)

// ClaimMatch is a condition on a claim.
type ClaimMatch struct {
	// Claim is the path to the claim, one element for each step.
	Claim []string `json:"claim"`
	// Values are alternatives. A claim that is a list must contain one of them.
	Values []string `json:"values"`
}

func claimsOfList(list []model.RequiredClaim) []ClaimMatch {
	var out []ClaimMatch
	for _, c := range list {
		out = append(out, ClaimMatch{Claim: strings.Split(c.Claim, "."), Values: c.Values})
	}
	return out
}

func claimsOfMap(require map[string][]string) []ClaimMatch {
	var list []ClaimMatch
	for _, claim := range slices.Sorted(maps.Keys(require)) {
		list = append(list, ClaimMatch{Claim: strings.Split(claim, "."), Values: require[claim]})
	}
	return list
}

// noClaims refuses every request.
func noClaims(ir.Listener) []seam.Message {
	return []seam.Message{{Name: claimsFilter, Config: &rbacv3.RBAC{
		Rules: &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_ALLOW},
	}}}
}

// claims refuses requests that lack one of the claims. For tokens, the name of the policy is in the refusal. For a
// login, no policy is: see notAllowed.
func claims(d demands) []seam.Message {
	switch {
	case d.tokens != nil && len(d.tokens.Require) > 0:
		return []seam.Message{refuseUnless(claimsFilter, claimRefused, hasClaims(d.tokens.Require))}
	case d.tokens == nil && d.login != nil && len(d.login.Require) > 0:
		rules := seam.RefuseAll("claims")
		rules.Action = rbacconfigv3.RBAC_ALLOW
		rules.GetPolicies()["claims"].Principals = []*rbacconfigv3.Principal{hasClaims(d.login.Require)}
		return []seam.Message{{Name: claimsFilter, Config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: rules}}}}
	}
	return nil
}

func hasClaims(list []ClaimMatch) *rbacconfigv3.Principal {
	var all []*rbacconfigv3.Principal
	for _, c := range list {
		all = append(all, hasClaim(c))
	}
	return andAll(all)
}

// hasClaim matches a request whose claim has one of the values. The claim is a string or a
// list.
func hasClaim(c ClaimMatch) *rbacconfigv3.Principal {
	is := &matcherv3.OrMatcher{}
	for _, v := range c.Values {
		one := text(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: v}})
		list := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_ListMatch{ListMatch: &matcherv3.ListMatcher{
			MatchPattern: &matcherv3.ListMatcher_OneOf{OneOf: one},
		}}}
		is.ValueMatchers = append(is.ValueMatchers, one, list)
	}
	return metadataPrincipal(seam.TokenFilter, append([]string{seam.Claims}, c.Claim...), &matcherv3.ValueMatcher{
		MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: is},
	})
}
