package model

import (
	"regexp"
	"slices"
	"strings"
)

// HostRewriteFilter changes the Host that the upstream receives. Specify exactly one of host, from_header and
// from_path. The upstream receives the host of the request in x-forwarded-host.
// +page=hostrewrite.md
// +example={host: inner.example.com}
type HostRewriteFilter struct {
	// A host name or an address, optionally with a port.
	Host string `json:"host"`
	// The header with the host. Without it, the host stays as it is.
	// +maxLength=maxHeaderName
	FromHeader string `json:"from_header"`
	// Makes the host from the path.
	FromPath *HostFromPath `json:"from_path"`
}

// HostFromPath makes a host from the path of a request, without its query. A route with it matches only requests whose
// whole path matches regex.
type HostFromPath struct {
	// An RE2 expression for the whole path.
	// +required
	// +maxLength=1024
	Regex string `json:"regex"`
	// The host, with \1 for the first group of regex.
	// +required
	Substitution string `json:"substitution"`
}

func readHostRewrite(v *validator, at, _ string, config JSON) Spec {
	var f HostRewriteFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	given := 0
	if f.Host != "" {
		given++
		if _, err := hostOf(f.Host); err != nil {
			v.add(at+".host", "%q is not a host name or an address, optionally with a port", f.Host)
		}
	}
	if f.FromHeader != "" {
		given++
		v.hostHeader(at+".from_header", f.FromHeader)
	}
	if f.FromPath != nil {
		given++
		f.FromPath.check(v, at+".from_path")
	}
	if given != 1 {
		v.add(at, `requires one of host, from_header and from_path, such as {"host":"inner.example.com"}`)
	}
	return &f
}

func (f *HostRewriteFilter) uses() []Key { return nil }

// Advice says what is legal and probably not meant.
func (f *HostRewriteFilter) Advice() []string {
	if f.FromHeader == "" {
		return nil
	}
	return []string{"takes the Host from the header " + f.FromHeader +
		", which any client can send: use a header that a proxy in front of the gateway sets or removes"}
}

// hostHeader accepts a header that may hold a host.
func (v *validator) hostHeader(field, name string) {
	lower := strings.ToLower(name)
	switch {
	case strings.HasPrefix(name, ":") || lower == "host" || slices.Contains(connectionHeaders(), lower) ||
		strings.HasPrefix(lower, "x-envoy-"):
		v.add(field, "%q cannot hold a host for the upstream", name)
	case len(name) > maxHeaderName:
		v.add(field, "has more than %d characters", maxHeaderName)
	default:
		v.token(field, name)
	}
}

func (f HostFromPath) check(v *validator, at string) {
	if n := len(v.errs); f.Regex == "" {
		v.add(at+".regex", "is required")
		return
	} else if v.regex(at+".regex", f.Regex); n < len(v.errs) {
		return
	}
	v.substitution(at, f.Regex, f.Substitution)
	// What stands between the groups, with a letter for each of them.
	host := strings.ReplaceAll(regexp.MustCompile(`\\[0-9]`).ReplaceAllString(f.Substitution, "a"), `\\`, `\`)
	if _, err := hostOf(host); err != nil {
		v.add(at+".substitution", "%q does not make a host name, such as \\1.example.com", f.Substitution)
	}
}
