package seam

import "strings"

// Cookie returns the value of a cookie (Http::Utility::parseCookies). If there are several, it is the first.
func (r Request) Cookie(name string) (value string, there bool) {
	for _, header := range r.Headers["cookie"] {
		for part := range strings.SplitSeq(header, ";") {
			n, v, found := strings.Cut(strings.Trim(part, " \t"), "=")
			if !found || n != name {
				continue
			}
			if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
				v = v[1 : len(v)-1]
			}
			return v, true
		}
	}
	return "", false
}
