package model

import (
	"net/netip"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// origin accepts an origin in the form in which browsers send it (RFC 6454 section 6.1): compared with any
// other form it would never be the same.
func (v *validator) origin(field, s string) {
	scheme, host, found := strings.Cut(s, "://")
	bare, port := cutPort(host)
	usual := map[string]string{"https": "443", "http": "80"}[strings.ToLower(scheme)]
	end := strings.IndexAny(host, "/?#")
	switch {
	case s == "null":
		v.add(field, `browsers send "null" for pages without an origin, which anybody can make; remove it`)
	case strings.Contains(s, "*"):
		v.add(field, `%q has a "*", which is allowed only alone, for all origins; use an expression, `+
			`such as {"regex":"https://[a-z0-9-]+\\.example\\.com"}`, s)
	case !found || scheme == "" || host == "" || strings.Contains(host, "@"):
		v.add(field, "%q is not an origin such as https://app.example.com", s)
	case end >= 0:
		v.add(field, "%q has a path, and an origin has none; write %q", s, scheme+"://"+host[:end])
	case s != strings.ToLower(s):
		v.add(field, "%q must be in lower case, as browsers send it; write %q", s, strings.ToLower(s))
	case usual != "" && port == usual:
		v.add(field, "%q has the default port, which browsers omit; write %q", s, scheme+"://"+bare)
	case !isScheme(scheme) || !isOriginHost(bare) || !isOriginPort(host, port):
		v.add(field, "%q is not an origin such as https://app.example.com", s)
	}
}

// cutPort cuts the port from a host.
func cutPort(host string) (bare, port string) {
	if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
		return host[:at], host[at+1:]
	}
	return host, ""
}

func isScheme(s string) bool { return regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`).MatchString(s) }

// isOriginHost accepts a host name in ASCII, an IPv4 address, and an IPv6 address in brackets.
func isOriginHost(s string) bool {
	if inner, found := strings.CutPrefix(s, "["); found {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return err == nil && a.Is6() && a.Zone() == "" && "["+a.String()+"]" == s
	}
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4() || isDNSName(s) && !looksLikeIPv4(s)
}

func isOriginPort(host, port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" && !strings.HasSuffix(host, ":") || err == nil && n > 0 && port[0] != '0'
}

// originRegex accepts an expression that whole origins have to match, but none that lets any origin in.
func (v *validator) originRegex(field, expr string) {
	before := len(v.errs)
	v.regex(field, expr)
	if len(v.errs) > before {
		return
	}
	re, err := regexp.Compile(`^(?:` + expr + `)$`)
	if err != nil {
		return // v.regex has read it
	}
	// Envoy asks for "*" too, and takes a yes for all origins.
	for _, anybody := range []string{AnyOrigin, "null", "https://any.invalid", "http://any.invalid"} {
		if re.MatchString(anybody) {
			v.add(field, `%q matches the origin %q, and so allows anybody; write "*" to allow all origins`, expr, anybody)
			return
		}
	}
}

// originHoles says in which ways an expression for origins lets in more than its writer may think.
func originHoles(expr string) []string {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if expr == "" || err != nil {
		return nil
	}
	var h holes
	h.look(parsed)
	var list []string
	for _, hole := range []struct {
		there bool
		what  string
	}{
		{h.dot, `in which a dot stands for any character: write \. for a dot`},
		{h.before, `in which any text comes right before a name: those of others can end as it does; write \. before it`},
		{
			isAny(lastPart(parsed), "."),
			"which ends in any text: names of others can begin as yours do; end it with the whole name",
		},
	} {
		if hole.there {
			list = append(list, hole.what)
		}
	}
	return list
}

type holes struct{ dot, before bool }

func (h *holes) look(re *syntax.Regexp) {
	h.dot = h.dot || re.Op == syntax.OpAnyCharNotNL
	switch re.Op {
	case syntax.OpConcat, syntax.OpCapture, syntax.OpAlternate, syntax.OpQuest:
	default:
		return
	}
	for i, part := range re.Sub {
		h.look(part)
		if re.Op == syntax.OpConcat && i > 0 && i+1 < len(re.Sub) && isAny(part, "a") &&
			strings.HasSuffix(literal(re.Sub[i-1]), "//") && isName(literal(re.Sub[i+1])) {
			h.before = true
		}
	}
}

// isName reports whether a text begins with a part of a name.
func isName(text string) bool { return text != "" && text[0] != '.' && text[0] != ':' }

func literal(re *syntax.Regexp) string {
	if re.Op != syntax.OpLiteral {
		return ""
	}
	return string(re.Rune)
}

// isAny reports whether a part of an expression matches texts of any length that have the character.
func isAny(part *syntax.Regexp, character string) bool {
	if part.Op != syntax.OpStar && part.Op != syntax.OpPlus {
		return false
	}
	re, err := regexp.Compile(`^(?:` + part.Sub[0].String() + `)$`)
	return err == nil && re.MatchString(character)
}

func lastPart(re *syntax.Regexp) *syntax.Regexp {
	for (re.Op == syntax.OpConcat || re.Op == syntax.OpCapture) && len(re.Sub) > 0 {
		re = re.Sub[len(re.Sub)-1]
	}
	return re
}
