package compile

import (
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostAccess(h *ir.Host, f *model.RBACFilter, _ Place) error {
	h.Access = append(h.Access, accessOf(f))
	return nil
}

func addRouteAccess(r *ir.Route, f *model.RBACFilter) { r.Access = append(r.Access, accessOf(f)) }

func accessOf(f *model.RBACFilter) *ir.Access {
	return &ir.Access{Allow: accessRules(f.Allow), Deny: accessRules(f.Deny)}
}

func accessRules(list []model.AccessRule) []ir.AccessRule {
	var out []ir.AccessRule
	for _, r := range list {
		rule := ir.AccessRule{Methods: r.Methods, Claims: requiredClaims(r.Claims), Addresses: sortRanges(parseRanges(r.Addresses))}
		for _, c := range r.Clients {
			if !strings.Contains(c, "/") {
				c = model.ClientID(c, "")
			}
			rule.Clients = append(rule.Clients, c)
		}
		for _, h := range r.Headers {
			rule.Headers = append(rule.Headers, ir.HeaderValues{Name: strings.ToLower(h.Name), Values: h.Values})
		}
		for _, p := range r.Paths {
			switch {
			case p.Exact != "":
				rule.Paths = append(rule.Paths, ir.AccessPath{Kind: ir.PathExact, Path: p.Exact})
			case p.Prefix != "":
				rule.Paths = append(rule.Paths, ir.AccessPath{Kind: ir.PathPrefix, Path: p.Prefix})
			default:
				rule.Paths = append(rule.Paths, ir.AccessPath{Kind: ir.PathSegment, Path: strings.TrimRight(p.Segment, "/")})
			}
		}
		out = append(out, rule)
	}
	return out
}

func requiredClaims(list []model.RequiredClaim) []ir.ClaimMatch {
	var out []ir.ClaimMatch
	for _, c := range list {
		out = append(out, ir.ClaimMatch{Claim: strings.Split(c.Claim, "."), Values: c.Values})
	}
	return out
}
