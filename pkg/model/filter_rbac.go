package model

import (
	"fmt"
	"strings"
)

// RBACFilter says who may do what: a request passes if a rule of allow is for it, and none of deny. The filters of a
// service and a route add up: a request has to pass each.
// +page=rbac.md
// +example={allow: [{methods: [GET, HEAD]}, {paths: [{segment: /admin}], claims: [{claim: groups, values: [staff]}]}],
// deny: [{paths: [{prefix: /internal}]}]}
type RBACFilter struct {
	// What may be done. All else may not.
	// +required
	// +minItems=1
	// +maxItems=maxRules
	Allow []AccessRule `json:"allow"`
	// What may not be done, also if allow has it. Paths are compared without regard to case.
	// +maxItems=maxRules
	Deny []AccessRule `json:"deny"`
}

// AccessRule is for the requests that meet all its conditions.
// +example={methods: [POST], paths: [{exact: /orders}], claims: [{claim: scope, values: [orders]}]}
type AccessRule struct {
	// One of these; absent means all.
	// +maxItems=maxRuleParts
	// +items={type: string, minLength: 1, maxLength: maxWord}
	Methods []string `json:"methods"`
	// One of these, of the path without its query; absent means all.
	// +maxItems=maxRuleParts
	Paths []AccessPath `json:"paths"`
	// All of these, of the token or login that the request was verified with.
	// +maxItems=maxRequired
	Claims []RequiredClaim `json:"claims"`
}

// AccessPath is a path, what paths begin with, or a path and all below it. Exactly one is given.
// +example={segment: /admin}
type AccessPath struct {
	// +maxLength=4096
	Exact string `json:"exact"`
	// /admin is also for /administrators.
	// +maxLength=4096
	Prefix string `json:"prefix"`
	// /admin is for /admin, and what begins with /admin/.
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
		v.add(at+".allow", `has no rule, so that nothing could be done; give what may be, or {"allow":[{}]} with what may not in deny`)
	}
	v.rules(at+".allow", f.Allow)
	v.rules(at+".deny", f.Deny)
	for i, r := range f.Deny {
		if r.isForAll() {
			v.add(fmt.Sprintf("%s.deny[%d]", at, i), "has no condition, so that nothing could be done; give methods, paths or claims")
		}
	}
	return &f
}

func (f *RBACFilter) uses() []Key { return nil }

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

func (r AccessRule) isForAll() bool { return len(r.Methods)+len(r.Paths)+len(r.Claims) == 0 }

func (v *validator) rules(at string, list []AccessRule) {
	if len(list) > maxRules {
		v.add(at, "has %d rules; at most %d are allowed", len(list), maxRules)
		return
	}
	for i, r := range list {
		rule := fmt.Sprintf("%s[%d]", at, i)
		if len(r.Methods) > maxRuleParts || len(r.Paths) > maxRuleParts {
			v.add(rule, "has more than %d methods or paths", maxRuleParts)
			continue
		}
		for j, m := range r.Methods {
			field := fmt.Sprintf("%s.methods[%d]", rule, j)
			if v.token(field, m); m != strings.ToUpper(m) {
				v.add(field, "%q has small letters, and methods are compared as they are: write %s", m, strings.ToUpper(m))
			}
		}
		for j, p := range r.Paths {
			v.accessPath(fmt.Sprintf("%s.paths[%d]", rule, j), p)
		}
		v.requiredClaims(rule+".claims", r.Claims)
	}
}

// accessPath accepts a path as Envoy compares it: what it makes plain in those of requests is in none.
func (v *validator) accessPath(at string, p AccessPath) {
	path := p.Exact + p.Prefix + p.Segment
	switch {
	case (AccessPath{Exact: path}) != p && (AccessPath{Prefix: path}) != p && (AccessPath{Segment: path}) != p || path == "":
		v.add(at, `takes exactly one of exact, prefix and segment, such as {"segment":"/admin"}`)
	case strings.Contains(path, "//") || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../") || strings.ContainsAny(path, `\%`):
		v.add(at, "%q is no path that a request has here: it has //, a dot segment, a backslash or a percent sign", path)
	default:
		v.urlPath(at, path)
	}
}
