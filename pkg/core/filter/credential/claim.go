package credential

import (
	"maps"
	"regexp"
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
	case d.tokens != nil && d.tokens.restricts():
		allowed := allowedToken(d.tokens)
		if d.tokens.Check.Optional {
			allowed = orAll([]*rbacconfigv3.Principal{notID(hasToken()), allowed})
		}
		return []seam.Message{refuseUnless(claimsFilter, claimRefused, allowed)}
	case d.tokens == nil && d.login != nil && len(d.login.Require) > 0:
		rules := seam.RefuseAll("claims")
		rules.Action = rbacconfigv3.RBAC_ALLOW
		rules.GetPolicies()["claims"].Principals = []*rbacconfigv3.Principal{hasClaims(d.login.Require)}
		return []seam.Message{{Name: claimsFilter, Config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: rules}}}}
	}
	return nil
}

// restricts reports whether a token of an issuer has to have claims or scopes.
func (t *Tokens) restricts() bool {
	return slices.ContainsFunc(t.issuers(), func(one *Tokens) bool { return len(one.Require)+len(one.Scopes) > 0 })
}

// allowedToken matches a request whose token has the claims and scopes that are required of its issuer.
func allowedToken(t *Tokens) *rbacconfigv3.Principal {
	if len(t.Others) == 0 {
		return andAll(t.conditions())
	}
	return issuedToken(t)
}

// issuedToken matches a request whose token is of one of the issuers, and has what is required of it.
func issuedToken(t *Tokens) *rbacconfigv3.Principal {
	var list []*rbacconfigv3.Principal
	for _, one := range t.issuers() {
		is := metadataPrincipal(seam.TokenFilter, []string{seam.Claims, "iss"}, text(&matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Exact{Exact: one.Check.Issuer},
		}))
		if conditions := one.conditions(); len(conditions) > 0 {
			is = andAll([]*rbacconfigv3.Principal{is, andAll(conditions)})
		}
		list = append(list, is)
	}
	return orIDs(list)
}

// conditions are what the tokens of one issuer must have.
func (t *Tokens) conditions() []*rbacconfigv3.Principal {
	list := hasClaims(t.Require).GetAndIds().GetIds()
	for _, scope := range t.Scopes {
		list = append(list, hasScope(scope))
	}
	return list
}

// hasToken matches a request with a token that was verified: it has an issuer.
func hasToken() *rbacconfigv3.Principal {
	return metadataPrincipal(seam.TokenFilter, []string{seam.Claims, "iss"}, &matcherv3.ValueMatcher{
		MatchPattern: &matcherv3.ValueMatcher_PresentMatch{PresentMatch: true},
	})
}

// hasScope matches a request whose token has a scope: a word of its claim, or an element of the list (RFC 8693 section
// 4.2, and scp, as some issuers call it).
func hasScope(scope string) *rbacconfigv3.Principal {
	word := text(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
		SafeRegex: &matcherv3.RegexMatcher{Regex: `(?:.* )?` + regexp.QuoteMeta(scope) + `(?: .*)?`},
	}})
	one := text(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: scope}})
	is := &matcherv3.OrMatcher{ValueMatchers: []*matcherv3.ValueMatcher{word, listWith(one)}}
	var names []*rbacconfigv3.Principal
	for _, claim := range []string{"scope", "scp"} {
		names = append(names, metadataPrincipal(seam.TokenFilter, []string{seam.Claims, claim}, &matcherv3.ValueMatcher{
			MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: is},
		}))
	}
	return orAll(names)
}

// listWith matches a list with an element.
func listWith(one *matcherv3.ValueMatcher) *matcherv3.ValueMatcher {
	return &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_ListMatch{ListMatch: &matcherv3.ListMatcher{
		MatchPattern: &matcherv3.ListMatcher_OneOf{OneOf: one},
	}}}
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
		is.ValueMatchers = append(is.ValueMatchers, one, listWith(one))
	}
	return metadataPrincipal(seam.TokenFilter, append([]string{seam.Claims}, c.Claim...), &matcherv3.ValueMatcher{
		MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: is},
	})
}
