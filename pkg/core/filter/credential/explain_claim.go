package credential

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// refuseClaims refuses a request whose token lacks a claim. The token has passed refuseToken.
func refuseClaims(r seam.Request) (*seam.Refusal, error) {
	place := tokenPlaceOf(r)
	if place == nil {
		return nil, nil
	}
	claims, _ := claimsOf(place.find(r))
	message, err := seam.MessageOf(claimsFilter, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return nil, err
	}
	for _, principal := range message.GetRbac().GetRules().GetPolicies()[claimRefused].GetPrincipals() {
		refused, err := caller{Request: r, claims: claims, known: true}.is(principal)
		if err != nil {
			return nil, err
		}
		if refused == yes {
			return &seam.Refusal{
				Code: "claim_refused", Type: tokenFilterOf(r), Details: seam.Denied(claimRefused),
				Status: http.StatusForbidden, Body: seam.DeniedBody,
				Message: fmt.Sprintf("%s requires of the token: %s. The token of the request does not have it",
					place.filter(), requiredClaims(principal)),
			}, nil
		}
	}
	return nil, nil
}

func describeClaims(r seam.Request) (string, error) {
	message, err := seam.MessageOf(claimsFilter, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return "", err
	}
	of, required := "id_token", []string{}
	for name, policy := range message.GetRbac().GetRules().GetPolicies() {
		if name == claimRefused {
			of = "token"
		}
		for _, principal := range policy.GetPrincipals() {
			required = append(required, requiredClaims(principal))
		}
	}
	return "requires of the " + of + ": " + strings.Join(required, "; ") + ". Other requests get 403", nil
}

// requiredClaims describes the claims of a principal, which may be negated.
func requiredClaims(p *rbacconfigv3.Principal) string {
	if not := p.GetNotId(); not != nil {
		p = not
	}
	if either := p.GetOrIds().GetIds(); len(either) == 2 && either[0].GetNotId() != nil { // of a token that may be missing
		p = either[1]
	}
	var list []string
	if issuers := p.GetOrIds().GetIds(); len(issuers) > 0 {
		for _, one := range issuers {
			list = append(list, ofIssuer(one))
		}
		return strings.Join(list, ", or ")
	}
	for _, one := range p.GetAndIds().GetIds() {
		list = append(list, requiredClaim(one))
	}
	return strings.Join(list, "; ")
}

// ofIssuer describes what is required of the tokens of one of several issuers.
func ofIssuer(p *rbacconfigv3.Principal) string {
	is, conditions := p, ""
	if both := p.GetAndIds().GetIds(); len(both) == 2 {
		is, conditions = both[0], " and "+requiredClaims(both[1])
	}
	return "that it is of " + is.GetSourcedMetadata().GetMetadataMatcher().GetValue().GetStringMatch().GetExact() + conditions
}

func requiredClaim(p *rbacconfigv3.Principal) string {
	if names := p.GetOrIds().GetIds(); len(names) > 0 { // a scope, under several names
		p = names[0]
	}
	m := p.GetSourcedMetadata().GetMetadataMatcher()
	var steps, values []string
	for _, step := range m.GetPath()[min(1, len(m.GetPath())):] {
		steps = append(steps, step.GetKey())
	}
	for _, v := range m.GetValue().GetOrMatch().GetValueMatchers() {
		text := cmp.Or(v.GetStringMatch().GetExact(), v.GetListMatch().GetOneOf().GetStringMatch().GetExact())
		if text != "" && !slices.Contains(values, text) {
			values = append(values, text)
		}
	}
	return strings.Join(steps, ".") + " is, or has, " + strings.Join(values, " or ")
}
