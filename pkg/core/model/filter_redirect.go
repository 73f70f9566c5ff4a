package model

import (
	"net/http"
	"slices"
	"strings"
)

// RedirectFilter sends clients to another URL. Absent fields keep the value of the request; specify
// at least one field other than code. A service or a route has at most one filter that answers.
// +page=answers.md
// +example={host: new.example.com, prefix: /v2, code: 301}
type RedirectFilter struct {
	// Absent means the scheme of the request.
	// +enum=[https, http]
	Scheme string `json:"scheme"`
	// A host name or an address, without a port.
	Host string `json:"host"`
	// Absent means the port of the request. If the scheme changes, the default port of the old scheme is removed.
	// +minimum=1
	// +maximum=65535
	Port int `json:"port"`
	// The whole path, and the query if it has one. Specify at most one of path, prefix and regex.
	Path string `json:"path"`
	// Replaces the path that the route matches.
	Prefix string `json:"prefix"`
	// An RE2 expression: each match in the path is replaced.
	// +maxLength=1024
	Regex string `json:"regex"`
	// The replacement of a match of regex, with \1 for the first group.
	Substitution string `json:"substitution"`
	// Removes the query.
	StripQuery bool `json:"strip_query"`
	// Absent means 308 if scheme is https, otherwise 307: both keep the method (RFC 9110 section 15.4), and browsers
	// remember 308.
	// +enum=[301, 302, 303, 307, 308]
	Code int `json:"code"`
}

func readRedirect(v *validator, at, _ string, config JSON) Spec {
	var f RedirectFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if f == (RedirectFilter{Code: f.Code}) {
		v.add(at, `changes nothing; set scheme, host, port, path, prefix, regex or strip_query, such as {"path":"/new"}`)
	}
	if f.Scheme != "" {
		v.oneOf(at+".scheme", f.Scheme, []string{"https", "http"})
	}
	if f.Host != "" {
		if host, err := hostOf(f.Host); err != nil || strings.Trim(strings.ToLower(f.Host), "[]") != host {
			v.add(at+".host", "%q is not a host name or an address; port has a field of its own", f.Host)
		}
	}
	if f.Port != 0 {
		v.checkRange(at+".port", f.Port, 1, 65535)
	}
	f.checkPath(v, at)
	if f.Code == 0 {
		f.Code = http.StatusTemporaryRedirect
		if f.Scheme == "https" {
			f.Code = http.StatusPermanentRedirect
		}
	}
	if !slices.Contains([]int{301, 302, 303, 307, 308}, f.Code) {
		v.add(at+".code", "%d is not one of 301, 302, 303, 307, 308", f.Code)
	}
	return &f
}

func (f *RedirectFilter) uses() []Key { return nil }

// checkPath checks what takes the place of the path.
func (f *RedirectFilter) checkPath(v *validator, at string) {
	given := 0
	if f.Path != "" {
		given++
		path, query, _ := strings.Cut(f.Path, "?")
		v.urlPath(at+".path", path)
		v.urlPath(at+".path", "/"+strings.ReplaceAll(query, "?", ""))
	}
	if f.Prefix != "" {
		given++
		v.urlPath(at+".prefix", f.Prefix)
	}
	if f.Regex != "" {
		given++
		v.substitution(at, f.Regex, f.Substitution)
	} else if f.Substitution != "" {
		v.add(at+".substitution", "requires regex")
	}
	if given > 1 {
		v.add(at, "takes only one of path, prefix and regex")
	}
}
