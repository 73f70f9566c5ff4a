package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// subject is what is compared with routes.
type subject struct {
	path    string
	query   string
	headers headers
	// client is the address of the client.
	client string
	// secure means that the connection uses TLS. serverName is the host name for which the client
	// made it, in lower case.
	secure     bool
	serverName string
	// claims are the claims of its token. knownClaims is false if they are in a token that only Envoy
	// reads.
	claims      map[string]any
	knownClaims bool
	// apiClient is the client of its API key.
	apiClient string
}

// tryRoute compares the request with one route.
func (s subject) tryRoute(r *routev3.Route) (Route, error) {
	out := Route{Route: r.GetName(), Matches: true}
	add := func(c Check, err error) error {
		out.Checks = append(out.Checks, c)
		out.Matches = out.Matches && c.Holds
		return err
	}
	err := add(s.checkPath(r.GetMatch()))
	for _, m := range r.GetMatch().GetHeaders() {
		if err == nil {
			err = add(s.checkHeader(m))
		}
	}
	for _, m := range r.GetMatch().GetQueryParameters() {
		if err == nil {
			err = add(s.checkQuery(m))
		}
	}
	for _, m := range r.GetMatch().GetCookies() {
		if err == nil {
			err = add(s.checkCookie(m))
		}
	}
	if err != nil {
		return out, fmt.Errorf("explaining route %q: %w", r.GetName(), err)
	}
	return out, nil
}

// checkPath compares the path without its query.
func (s subject) checkPath(m *routev3.RouteMatch) (Check, error) {
	path, fold := s.path, m.GetCaseSensitive() != nil && !m.GetCaseSensitive().GetValue()
	folded := func(text string) string {
		if fold {
			return lowerASCII(text)
		}
		return text
	}
	path = folded(path)
	told := func(code string, holds bool, yes, no, what string) (Check, error) {
		verb := no
		if holds {
			verb = yes
		}
		return Check{code, holds, fmt.Sprintf("path %q %s %q", s.path, verb, what)}, nil
	}
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		return told("path_prefix", strings.HasPrefix(path, folded(p.Prefix)), "begins with", "does not begin with", p.Prefix)
	case *routev3.RouteMatch_PathSeparatedPrefix:
		rest, ok := strings.CutPrefix(path, folded(p.PathSeparatedPrefix))
		ok = ok && (rest == "" || rest[0] == '/')
		return told("path_segment", ok, "is at or below", "is not at or below", p.PathSeparatedPrefix)
	case *routev3.RouteMatch_Path:
		return told("path_exact", path == folded(p.Path), "is", "is not", p.Path)
	case *routev3.RouteMatch_SafeRegex:
		re, err := wholeRegex(p.SafeRegex.GetRegex())
		if err != nil {
			return Check{}, err
		}
		return told("path_regex", re.MatchString(latin1(s.path)), "matches as a whole", "does not match as a whole", p.SafeRegex.GetRegex())
	case *routev3.RouteMatch_PathMatchPolicy:
		template, err := templateOf(m)
		if err != nil {
			return Check{}, err
		}
		_, holds := template.Match(s.path)
		return told("path_template", holds, "matches the template", "does not match the template", template.String())
	default:
		return Check{}, fmt.Errorf("path condition %T is not known", p)
	}
}

// checkHeader compares a header (HeaderUtility::matchHeaders). One of several values must match; if
// inverted, none may match.
func (s subject) checkHeader(m *routev3.HeaderMatcher) (Check, error) {
	name := lowerASCII(m.GetName())
	if name == "host" {
		name = authority
	}
	c := Check{Code: "header"}
	what := "header " + m.GetName()
	if name == ":method" {
		c.Code, what = "method", "method"
	}
	values, there := s.headers[name]
	shown := "is missing"
	if there {
		shown = "is " + quoteList(values)
	}
	invert := m.GetInvertMatch()
	switch spec := m.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_PresentMatch:
		wanted := spec.PresentMatch != invert
		c.Holds = there == wanted
		c.Message = fmt.Sprintf("%s %s; it %s", what, shown, map[bool]string{true: "must be present", false: "must be absent"}[wanted])
		return c, nil
	case *routev3.HeaderMatcher_StringMatch:
		matches, told, err := anyMatches(spec.StringMatch, values)
		if err != nil {
			return c, err
		}
		c.Holds = (there || m.GetTreatMissingHeaderAsEmpty()) && matches != invert
		must := "must be"
		if invert {
			must = "must be present and not be"
		}
		c.Message = fmt.Sprintf("%s %s; it %s %s", what, shown, must, told)
		return c, nil
	case *routev3.HeaderMatcher_RangeMatch:
		least, end := spec.RangeMatch.GetStart(), spec.RangeMatch.GetEnd()
		n, err := strconv.ParseInt(s.headers.get(name), 10, 64)
		c.Holds = there && err == nil && (n >= least && n < end) != invert
		c.Message = fmt.Sprintf("%s %s; it must be a number of at least %d", what, shown, least)
		return c, nil
	default:
		return c, fmt.Errorf("condition %T on header %q is not known", spec, m.GetName())
	}
}

// checkQuery compares the first value of a query parameter, undecoded.
func (s subject) checkQuery(m *routev3.QueryParameterMatcher) (Check, error) {
	value, there := firstParameter(s.query, m.GetName())
	c := Check{Code: "query"}
	shown := "is missing"
	if there {
		shown = fmt.Sprintf("is %q", value)
	}
	switch spec := m.GetQueryParameterMatchSpecifier().(type) {
	case *routev3.QueryParameterMatcher_PresentMatch:
		c.Holds = there == spec.PresentMatch
		c.Message = fmt.Sprintf("query parameter %s %s; it must be present", m.GetName(), shown)
	case *routev3.QueryParameterMatcher_StringMatch:
		matches, told, err := anyMatches(spec.StringMatch, []string{value})
		if err != nil {
			return c, err
		}
		c.Holds = there && matches
		c.Message = fmt.Sprintf("query parameter %s %s; it must be %s", m.GetName(), shown, told)
	default:
		return c, fmt.Errorf("condition %T on query parameter %q is not known", spec, m.GetName())
	}
	return c, nil
}

func firstParameter(query, name string) (value string, there bool) {
	for pair := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		if n, v, _ := strings.Cut(pair, "="); pair != "" && n == name {
			return v, true
		}
	}
	return "", false
}

// anyMatches reports whether a value matches. told describes the condition.
func anyMatches(m *matcherv3.StringMatcher, values []string) (matches bool, told string, err error) {
	folded := func(s string) string {
		if m.GetIgnoreCase() {
			return lowerASCII(s)
		}
		return s
	}
	var test func(string) bool
	plain := func(f func(s, part string) bool, part string) {
		test = func(s string) bool { return f(folded(s), folded(part)) }
	}
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		told = fmt.Sprintf("%q", p.Exact)
		plain(func(s, part string) bool { return s == part }, p.Exact)
	case *matcherv3.StringMatcher_Prefix:
		told = fmt.Sprintf("%q with anything after it", p.Prefix)
		plain(strings.HasPrefix, p.Prefix)
	case *matcherv3.StringMatcher_Suffix:
		told = fmt.Sprintf("%q with anything before it", p.Suffix)
		plain(strings.HasSuffix, p.Suffix)
	case *matcherv3.StringMatcher_Contains:
		told = fmt.Sprintf("%q with anything around it", p.Contains)
		plain(strings.Contains, p.Contains)
	case *matcherv3.StringMatcher_SafeRegex:
		told = fmt.Sprintf("a match of %q as a whole", p.SafeRegex.GetRegex())
		re, err := wholeRegex(p.SafeRegex.GetRegex())
		if err != nil {
			return false, "", err
		}
		test = func(s string) bool { return re.MatchString(latin1(s)) }
	default:
		return false, "", fmt.Errorf("text condition %T is not known", p)
	}
	return slices.ContainsFunc(values, test), told, nil
}

// wholeRegex compiles an expression that matches whole strings. They must be converted with latin1
// first.
func wholeRegex(expr string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(`^(?:` + latin1(expr) + `)$`)
	if err != nil {
		return nil, fmt.Errorf("reading the regular expression %q: %w", expr, err)
	}
	return re, nil
}

// latin1 converts each byte to a character, which is how Envoy's expressions see text: "." matches
// one byte of a longer UTF-8 sequence.
func latin1(s string) string {
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = rune(s[i])
	}
	return string(out)
}

// fromLatin1 is the inverse of latin1.
func fromLatin1(s string) string {
	out := make([]byte, 0, len(s))
	for _, c := range s {
		out = append(out, byte(c)) //nolint:gosec // latin1 made it from a byte
	}
	return string(out)
}

func quoteList(values []string) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = fmt.Sprintf("%q", v)
	}
	return strings.Join(list, " and ")
}
