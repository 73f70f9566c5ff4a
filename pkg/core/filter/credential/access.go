package credential

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// accessFilter is the name of the filter that enforces rules.
	accessFilter = "envoy.filters.http.rbac/access"
	// accessRefused is the name of the filter's policy in refusals.
	accessRefused                     = "access_refused"
	accessKey     seam.Key[[]*Access] = "access"
)

// Access is a set of rules for requests: a rule of Allow must match, and no
// rule of Deny may match.
type Access struct {
	Allow []AccessRule `json:"allow"`
	Deny  []AccessRule `json:"deny,omitempty"`
}

// AccessRule matches requests that meet all its conditions.
type AccessRule struct {
	// Methods and Paths are alternatives; empty means all.
	Methods []string     `json:"methods,omitempty"`
	Paths   []AccessPath `json:"paths,omitempty"`
	Claims  []ClaimMatch `json:"claims,omitempty"`
	// Clients are alternatives: the client of an API key, or a key set and a slash for all of its clients. Empty means
	// all, also those without a key.
	Clients []string `json:"clients,omitempty"`
	// Consumers and Groups are alternatives for who the consumer is, and for what it is in. Empty means all, also those
	// without one.
	Consumers []string `json:"consumers,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	// Headers must all hold.
	Headers []HeaderValues `json:"headers,omitempty"`
	// Addresses are alternatives for the address of the client; empty means all.
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	// AddressLists are names of shared lists, as alternatives to Addresses.
	AddressLists []string `json:"addressLists,omitempty"`
}

// HeaderValues is a header with one of some values; none means any value.
type HeaderValues struct {
	// Name is in lower case.
	Name   string   `json:"name"`
	Values []string `json:"values,omitempty"`
}

// AccessPath is a path of one kind: exact, prefix or segment.
type AccessPath struct {
	Kind ir.PathKind `json:"kind"`
	Path string      `json:"path"`
}

// addAccess adds rules to those before. A request must pass all of them.
func addAccess(before []*Access, f *model.RBACFilter, _ seam.Place) ([]*Access, error) {
	return append(slices.Clip(before), &Access{Allow: accessRules(f.Allow), Deny: accessRules(f.Deny)}), nil
}

func accessRules(list []model.AccessRule) []AccessRule {
	var out []AccessRule
	for _, r := range list {
		rule := AccessRule{
			Methods: r.Methods, Claims: claimsOfList(r.Claims), Addresses: seam.Ranges(nil, r.Addresses), AddressLists: r.AddressLists,
			Consumers: r.Consumers, Groups: r.Groups,
		}
		for _, c := range r.Clients {
			if !strings.Contains(c, "/") {
				c = model.ClientID(c, "")
			}
			rule.Clients = append(rule.Clients, c)
		}
		for _, h := range r.Headers {
			rule.Headers = append(rule.Headers, HeaderValues{Name: strings.ToLower(h.Name), Values: h.Values})
		}
		for _, p := range r.Paths {
			switch {
			case p.Exact != "":
				rule.Paths = append(rule.Paths, AccessPath{Kind: ir.PathExact, Path: p.Exact})
			case p.Prefix != "":
				rule.Paths = append(rule.Paths, AccessPath{Kind: ir.PathPrefix, Path: p.Prefix})
			default:
				rule.Paths = append(rule.Paths, AccessPath{Kind: ir.PathSegment, Path: strings.TrimRight(p.Segment, "/")})
			}
		}
		out = append(out, rule)
	}
	return out
}

// access refuses a request that one of the lists does not allow. The name of the policy is in
// the refusal.
func access(d demands) []seam.Message {
	if len(d.access) == 0 {
		return nil
	}
	var passes []*rbacconfigv3.Principal
	byMethod := false
	for _, a := range d.access {
		var allow, deny []*rbacconfigv3.Principal
		for _, r := range a.Allow {
			allow = append(allow, matching(r, false))
			byMethod = byMethod || len(r.Methods) > 0
		}
		for _, r := range a.Deny {
			deny = append(deny, matching(r, true))
			byMethod = byMethod || len(r.Methods) > 0
		}
		passes = append(passes, orIDs(allow))
		if len(deny) > 0 {
			passes = append(passes, notID(orIDs(deny)))
		}
	}
	if byMethod {
		passes = append(passes, notID(orIDs(methodOverrides())))
	}
	return []seam.Message{refuseUnless(accessFilter, accessRefused, andIDs(passes))}
}

// methodOverrides match requests with a header that makes some backends read another method
// than the one compared here.
func methodOverrides() []*rbacconfigv3.Principal {
	var list []*rbacconfigv3.Principal
	for _, name := range []string{"x-http-method-override", "x-http-method", "x-method-override"} {
		list = append(list, hasHeader(ir.ValueMatch{Name: name}))
	}
	return list
}

// matching matches the requests that a rule matches. A Deny rule also matches the forms of a
// path that a backend may treat as equal: in another case, and with parameters.
func matching(r AccessRule, denied bool) *rbacconfigv3.Principal {
	var all, methods, paths []*rbacconfigv3.Principal
	for _, m := range r.Methods {
		methods = append(methods, hasHeader(ir.ValueMatch{Name: ":method", Exact: m}))
	}
	for _, p := range r.Paths {
		for _, m := range pathMatchers(p, denied) {
			m.IgnoreCase = denied
			paths = append(paths, &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_UrlPath{
				UrlPath: &matcherv3.PathMatcher{Rule: &matcherv3.PathMatcher_Path{Path: m}},
			}})
		}
	}
	for _, list := range [][]*rbacconfigv3.Principal{methods, paths} {
		if len(list) > 0 {
			all = append(all, orIDs(list))
		}
	}
	for _, c := range r.Claims {
		all = append(all, hasClaim(c))
	}
	if len(r.Clients) > 0 {
		all = append(all, hasKeyOf(r.Clients))
	}
	if len(r.Consumers) > 0 {
		all = append(all, isConsumer(r.Consumers))
	}
	if len(r.Groups) > 0 {
		all = append(all, inGroups(r.Groups))
	}
	for _, h := range r.Headers {
		all = append(all, hasValue(h, denied))
	}
	if len(r.Addresses)+len(r.AddressLists) > 0 {
		all = append(all, comesFrom(r, denied))
	}
	return andIDs(all)
}

// hasKeyOf matches a request with the API key of one of the clients, whether the route requires a key or accepts one.
func hasKeyOf(clients []string) *rbacconfigv3.Principal {
	is := &matcherv3.OrMatcher{}
	for _, c := range clients {
		m := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: c}}
		if strings.HasSuffix(c, "/") { // all clients of a key set
			m = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: c}}
		}
		is.ValueMatchers = append(is.ValueMatchers, text(m))
	}
	value := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: or(is)}}
	return orIDs([]*rbacconfigv3.Principal{
		metadataPrincipal(seam.KeyFilter, []string{seam.User}, value),
		metadataPrincipal(AnyKeyFilter, []string{seam.User}, value),
	})
}

// hasValue matches a header. A Deny rule also matches a value in another case, and one of several in a header: Envoy
// compares them joined.
func hasValue(h HeaderValues, denied bool) *rbacconfigv3.Principal {
	if len(h.Values) == 0 {
		return hasHeader(ir.ValueMatch{Name: h.Name})
	}
	var list []*rbacconfigv3.Principal
	for _, v := range h.Values {
		m := ir.ValueMatch{Name: h.Name, Exact: v}
		if denied {
			m = ir.ValueMatch{Name: h.Name, Regex: `(?i)(?:.*,)?[ \t]*` + regexp.QuoteMeta(v) + `[ \t]*(?:,.*)?`}
		}
		list = append(list, hasHeader(m))
	}
	return orIDs(list)
}

// comesFrom matches the address of the client, which a trusted proxy in front may have named. A Deny rule also matches if
// the Envoy does not have a list.
func comesFrom(r AccessRule, denied bool) *rbacconfigv3.Principal {
	var list []*rbacconfigv3.Principal
	for _, name := range r.AddressLists {
		if denied {
			list = append(list, notID(seam.Noted(name, seam.ListLacks)))
		} else {
			list = append(list, seam.Noted(name, seam.ListHas))
		}
	}
	for _, p := range r.Addresses {
		for _, form := range seam.FormsOf(p) {
			list = append(list, &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_RemoteIp{RemoteIp: &corev3.CidrRange{
				AddressPrefix: form.Addr().String(),
				PrefixLen:     wrapperspb.UInt32(uint32(form.Bits())), //nolint:gosec // at most 128
			}}})
		}
	}
	return orIDs(list)
}

func pathMatchers(p AccessPath, denied bool) []*matcherv3.StringMatcher {
	exact := func(s string) *matcherv3.StringMatcher {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: s}}
	}
	prefix := func(s string) *matcherv3.StringMatcher {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: s}}
	}
	var list []*matcherv3.StringMatcher
	switch p.Kind {
	case ir.PathPrefix:
		return []*matcherv3.StringMatcher{prefix(p.Path)}
	case ir.PathSegment:
		if p.Path == "" {
			return []*matcherv3.StringMatcher{prefix("/")}
		}
		list = []*matcherv3.StringMatcher{exact(p.Path), prefix(p.Path + "/")}
	default:
		list = []*matcherv3.StringMatcher{exact(p.Path)}
		if denied {
			list = append(list, exact(p.Path+"/"))
		}
	}
	if denied {
		list = append(list, prefix(p.Path+";"))
	}
	return list
}

func hasHeader(m ir.ValueMatch) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_Header{Header: seam.HeaderMatcher(m)}}
}
