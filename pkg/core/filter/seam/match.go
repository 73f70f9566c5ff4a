package seam

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// Matches reports whether one of the values matches. told describes the condition.
func Matches(m *matcherv3.StringMatcher, values ...string) (matches bool, told string, err error) {
	folded := func(s string) string {
		if m.GetIgnoreCase() {
			return LowerASCII(s)
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
		re, err := WholeRegex(p.SafeRegex.GetRegex())
		if err != nil {
			return false, "", err
		}
		test = func(s string) bool { return re.MatchString(Latin1(s)) }
	default:
		return false, "", fmt.Errorf("text condition %T is not known", p)
	}
	return slices.ContainsFunc(values, test), told, nil
}

// WholeRegex compiles an expression that matches whole strings. They must be converted with Latin1
// first.
func WholeRegex(expr string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(`^(?:` + Latin1(expr) + `)$`)
	if err != nil {
		return nil, fmt.Errorf("reading the regular expression %q: %w", expr, err)
	}
	return re, nil
}

// Latin1 converts each byte to a character, which is how Envoy's expressions see text: "." matches
// one byte of a longer UTF-8 sequence.
func Latin1(s string) string {
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = rune(s[i])
	}
	return string(out)
}

// LowerASCII lowers only ASCII letters.
func LowerASCII(s string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// CheckHeader compares a header (HeaderUtility::matchHeaders). One of several values must match; if inverted, none may
// match. told says what was compared.
func (r Request) CheckHeader(m *routev3.HeaderMatcher) (holds bool, told string, err error) {
	name := LowerASCII(m.GetName())
	if name == "host" {
		name = Authority
	}
	what := "header " + m.GetName()
	if name == Method {
		what = "method"
	}
	values, there := r.Headers[name]
	shown := "is missing"
	if there {
		shown = "is " + quoteList(values)
	}
	invert := m.GetInvertMatch()
	switch spec := m.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_PresentMatch:
		must := "must be present"
		if spec.PresentMatch == invert {
			must = "must be absent"
		}
		return there == (spec.PresentMatch != invert), fmt.Sprintf("%s %s; it %s", what, shown, must), nil
	case *routev3.HeaderMatcher_StringMatch:
		matches, condition, err := Matches(spec.StringMatch, values...)
		if err != nil {
			return false, "", err
		}
		must := "must be"
		if invert {
			must = "must be present and not be"
		}
		holds = (there || m.GetTreatMissingHeaderAsEmpty()) && matches != invert
		return holds, fmt.Sprintf("%s %s; it %s %s", what, shown, must, condition), nil
	case *routev3.HeaderMatcher_RangeMatch:
		least, end := spec.RangeMatch.GetStart(), spec.RangeMatch.GetEnd()
		n, err := strconv.ParseInt(r.Header(name), 10, 64)
		holds = there && err == nil && (n >= least && n < end) != invert
		return holds, fmt.Sprintf("%s %s; it must be a number of at least %d", what, shown, least), nil
	default:
		return false, "", fmt.Errorf("condition %T on header %q is not known", spec, m.GetName())
	}
}

func quoteList(values []string) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = fmt.Sprintf("%q", v)
	}
	return strings.Join(list, " and ")
}
