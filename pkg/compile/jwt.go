package compile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// asksWho reports whether a filter identifies the client. Two such filters in one place would
// have to agree.
func asksWho(f *model.ParsedFilter) bool {
	return f.Type == model.FilterJWT || f.Type == model.FilterOIDC || f.Type == model.FilterBasicAuth || f.Type == model.FilterAnyOf
}

// Clash returns the conflict if two filters cannot be in one place. The text follows the name
// of the object with the filters. Empty means no conflict. addLogin reports two logins itself.
func Clash(filters []*model.ParsedFilter) string {
	if what := SecondAnswer(filters); what != "" {
		return what
	}
	var asking []*model.ParsedFilter
	either := slices.ContainsFunc(filters, func(f *model.ParsedFilter) bool { return f.Type == model.FilterAnyOf })
	for _, f := range filters {
		if asksWho(f) || either && f.Type == model.FilterAPIKey {
			asking = append(asking, f)
		}
	}
	if len(asking) < 2 || !slices.ContainsFunc(asking, func(f *model.ParsedFilter) bool { return f.Type != model.FilterOIDC }) {
		return ""
	}
	return fmt.Sprintf("has filters %s and %s, of which only one can decide which requests are allowed (attach the other one to a route),", asking[0].Name, asking[1].Name)
}

func addHostJWT(h *ir.Host, f *model.JWTFilter, at Place) (err error) {
	if _, fault := f.Keys(); fault != "" {
		return errors.New("the keys of its tokens are not known: " + fault)
	}
	h.Tokens = tokensOf(f, at, false)
	return nil
}

// addRouteJWT omits details for clients of a closed route. The condition reports that the
// issuer fails.
func addRouteJWT(r *ir.Route, f *model.JWTFilter, at Place) error {
	if _, fault := f.Keys(); fault != "" {
		return errors.New("the keys of its tokens are not known")
	}
	r.Tokens = tokensOf(f, at, false)
	return nil
}

// tokensOf compiles a filter whose keys are known.
func tokensOf(f *model.JWTFilter, at Place, optional bool) *ir.Tokens {
	check := &ir.TokenCheck{Issuer: f.Issuer, Audiences: f.Audiences, Header: "authorization", Prefix: "Bearer ", Forward: f.Forward, Optional: optional}
	if p := f.From; p != nil {
		check.Header, check.Prefix, check.Cookie, check.Query = strings.ToLower(p.Header), p.Prefix, p.Cookie, p.Query
	}
	for _, c := range f.ClaimHeaders {
		check.ClaimHeaders = append(check.ClaimHeaders, ir.ClaimHeader{Header: strings.ToLower(c.Header), Claim: c.Claim})
	}
	slices.SortFunc(check.ClaimHeaders, func(a, b ir.ClaimHeader) int { return cmp.Compare(a.Header, b.Header) })
	check.Name = checkName(string(at.Key.Kind)+"/"+at.Key.Name(), check)
	check.JWKS, _ = f.Keys()
	return &ir.Tokens{Check: check, Require: requiredClaims(f.Require)}
}

// checkName derives the name of a check from its owner and its content. So checks with the same
// name differ only in their keys.
func checkName(of string, check *ir.TokenCheck) string {
	said, _ := json.Marshal(check) // strings only
	sum := sha256.Sum256(said)
	return of + "/" + hex.EncodeToString(sum[:4])
}
