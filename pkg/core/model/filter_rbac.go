package model

import (
	"fmt"
	"slices"
	"strings"
)

// RBACFilter decides which requests are allowed: those that match a rule of allow, and no rule of deny. The filters of
// a service and a route both apply: a request must be allowed by each.
// +page=rbac.md
// +example={allow: [{methods: [GET, HEAD]}, {paths: [{segment: /admin}], claims: [{claim: groups, values: [staff]}]}],
// deny: [{paths: [{prefix: /internal}]}]}
type RBACFilter struct {
	// The requests that are allowed. All others are refused.
	// +required
	// +minItems=1
	// +maxItems=maxRules
	Allow []AccessRule `json:"allow"`
	// The requests that are denied, even if allow matches them. The comparison of paths is case-insensitive.
	// +maxItems=maxRules
	Deny []AccessRule `json:"deny"`
}

// AccessRule matches the requests that meet all its conditions.
// +example={methods: [POST], paths: [{exact: /orders}], claims: [{claim: scope, values: [orders]}]}
type AccessRule struct {
	// A request must have one of these; absent means all.
	// +maxItems=maxRuleParts
	// +items={type: string, minLength: 1, maxLength: maxWord}
	Methods []string `json:"methods"`
	// The path, without its query, must match one of these; absent means all.
	// +maxItems=maxRuleParts
	Paths []AccessPath `json:"paths"`
	// The token or login that the request was verified with must have all of these.
	// +maxItems=maxRequired
	Claims []RequiredClaim `json:"claims"`
	// The API key of the request must be one of these: the name of a key set, or of a key in it, such as partners/mobile.
	// +maxItems=maxRuleParts
	// +items={type: string, minLength: 1}
	Clients []string `json:"clients"`
	// The request must be from one of these consumers.
	// +maxItems=maxRuleParts
	// +items={type: string, minLength: 1}
	Consumers []string `json:"consumers"`
	// The consumer of the request must be in one of these groups.
	// +maxItems=maxRuleParts
	// +items={type: string, minLength: 1}
	Groups []string `json:"groups"`
	// The request must have all of these headers.
	// +maxItems=maxRuleParts
	Headers []AccessHeader `json:"headers"`
	// The address of the client must be, or be in, one of these addresses and ranges.
	// +maxItems=maxRuleParts
	// +items={type: string, minLength: 1}
	Addresses []string `json:"addresses"`
	// Names of lists of addresses: the address of the client is in one of them, or in addresses.
	// +maxItems=maxLists
	// +items={type: string, minLength: 1}
	AddressLists []string `json:"address_lists"`
}

// AccessHeader is a header of a request. Clients choose their headers: it protects only what a client cannot want to
// reach.
// +example={name: x-region, values: [eu, us]}
type AccessHeader struct {
	// +required
	// +minLength=1
	// +maxLength=maxHeaderName
	Name string `json:"name"`
	// The header must have one of these; absent means any value. In deny the comparison is case-insensitive, and one of
	// several values of the header is enough.
	// +maxItems=maxRuleParts
	// +items={type: string, minLength: 1, maxLength: maxWord}
	Values []string `json:"values"`
}

// AccessPath is a path, what paths begin with, or a path and all below it. Specify exactly one.
// +example={segment: /admin}
type AccessPath struct {
	// +maxLength=4096
	Exact string `json:"exact"`
	// /admin also matches /administrators.
	// +maxLength=4096
	Prefix string `json:"prefix"`
	// /admin matches /admin, and paths that begin with /admin/.
	// +maxLength=4096
	Segment string `json:"segment"`
}

// The bounds of rules: an Envoy gets them for each route that has them, and compares one after the other.
const maxRules, maxRuleParts = 100, 50

func readRBAC(v *validator, at, _ string, config JSON) Spec {
	var f RBACFilter
	if !v.login(at, config, &f) {
		return &f
	}
	if len(f.Allow) == 0 {
		v.add(at+".allow", `has no rule, so nothing would be allowed; list what is allowed, `+
			`or write {"allow":[{}]} and list in deny what is not`)
	}
	v.rules(at+".allow", f.Allow)
	v.rules(at+".deny", f.Deny)
	for i, r := range f.Deny {
		if r.isForAll() {
			v.add(fmt.Sprintf("%s.deny[%d]", at, i), "has no condition, so nothing would be allowed; set methods, "+
				"paths or claims")
		}
	}
	return &f
}

func (f *RBACFilter) uses() (keys []Key) {
	for _, r := range slices.Concat(f.Allow, f.Deny) {
		keys = append(keys, listKeys(r.AddressLists)...)
	}
	return keys
}

// Advice says what lets everybody in.
func (f *RBACFilter) Advice() []string {
	var list []string
	for i, r := range f.Allow {
		if r.isForAll() && len(f.Deny) == 0 {
			list = append(list, fmt.Sprintf("allow[%d] has no condition: everybody may do everything", i))
		}
	}
	return list
}

func (r AccessRule) isForAll() bool {
	return len(r.Methods)+len(r.Paths)+len(r.Claims)+len(r.Clients)+len(r.Consumers)+len(r.Groups)+len(r.Headers)+len(r.Addresses)+len(r.AddressLists) == 0
}

func (v *validator) rules(at string, list []AccessRule) {
	if len(list) > maxRules {
		v.add(at, "has %d rules; at most %d are allowed", len(list), maxRules)
		return
	}
	for i, r := range list {
		rule := fmt.Sprintf("%s[%d]", at, i)
		if max(len(r.Methods), len(r.Paths), len(r.Clients), len(r.Consumers), len(r.Groups), len(r.Headers), len(r.Addresses)) > maxRuleParts {
			v.add(rule, "has more than %d methods, paths, clients, consumers, groups, headers or addresses", maxRuleParts)
			continue
		}
		for j, m := range r.Methods {
			field := fmt.Sprintf("%s.methods[%d]", rule, j)
			if v.token(field, m); m != strings.ToUpper(m) {
				v.add(field, "%q has lowercase letters, and methods are case-sensitive: write %s", m, strings.ToUpper(m))
			}
		}
		for j, p := range r.Paths {
			v.accessPath(fmt.Sprintf("%s.paths[%d]", rule, j), p)
		}
		v.requiredClaims(rule+".claims", r.Claims)
		for j, c := range r.Clients {
			set, key, one := strings.Cut(c, "/")
			field := fmt.Sprintf("%s.clients[%d]", rule, j)
			if v.name(field, set, false); one {
				v.name(field, key, false)
			}
		}
		for j, c := range r.Consumers {
			v.name(fmt.Sprintf("%s.consumers[%d]", rule, j), c, false)
		}
		v.groupList(rule+".groups", r.Groups)
		for j, h := range r.Headers {
			v.accessHeader(fmt.Sprintf("%s.headers[%d]", rule, j), h)
		}
		v.ranges(rule+".addresses", r.Addresses, maxRuleParts)
		v.lists(rule+".address_lists", r.AddressLists)
	}
}

// accessHeader accepts a header that a request can have where the rules compare it.
func (v *validator) accessHeader(at string, h AccessHeader) {
	lower := strings.ToLower(h.Name)
	switch {
	case strings.HasPrefix(lower, ":") || lower == "host":
		v.add(at+".name", "%q cannot be compared; methods and paths compare the request, and a service has its host", h.Name)
	case slices.Contains([]string{KeyHeader, AnyKeyHeader}, lower):
		v.add(at+".name", "%q is set by the gateway; clients compares the API key", h.Name)
	case len(h.Name) > maxHeaderName:
		v.add(at+".name", "has more than %d characters", maxHeaderName)
	default:
		v.token(at+".name", h.Name)
	}
	is := func(s string) bool { return s != "" && IsHeaderText(s) }
	v.words(at+".values", h.Values, maxRuleParts, is, "a value of a header")
}

// accessPath accepts a path as Envoy compares it: what it makes plain in those of requests is in none.
func (v *validator) accessPath(at string, p AccessPath) {
	path := p.Exact + p.Prefix + p.Segment
	switch {
	case (AccessPath{Exact: path}) != p && (AccessPath{Prefix: path}) != p && (AccessPath{Segment: path}) != p ||
		path == "":
		v.add(at, `takes exactly one of exact, prefix and segment, such as {"segment":"/admin"}`)
	case strings.Contains(path, "//") || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../") ||
		strings.ContainsAny(path, `\%`):
		v.add(at, "%q matches no request: paths are normalized first, and have no //, dot segment, backslash or percent sign",
			path)
	default:
		v.urlPath(at, path)
	}
}
