package explain

import (
	"fmt"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// subject is what is compared with routes.
type subject struct {
	path    string
	query   string
	headers headers
	// client is the address of the client.
	client string
	// port is that of the listener.
	port uint32
	// secure means that the connection uses TLS. serverName is the host name for which the client
	// made it, in lower case.
	secure     bool
	serverName string
	// metadata returns what filters have found about the client. If there is nothing, missing is the reason.
	metadata func(*metadatav3.MetadataKey) (value, missing string, err error)
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
	for _, m := range r.GetMatch().GetFilterState() {
		if err == nil {
			err = add(s.checkPort(m))
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
			return seam.LowerASCII(text)
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
		re, err := seam.WholeRegex(p.SafeRegex.GetRegex())
		if err != nil {
			return Check{}, err
		}
		return told("path_regex", re.MatchString(seam.Latin1(s.path)), "matches as a whole", "does not match as a whole", p.SafeRegex.GetRegex())
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

// checkHeader compares a header.
func (s subject) checkHeader(m *routev3.HeaderMatcher) (Check, error) {
	c := Check{Code: "header"}
	if seam.LowerASCII(m.GetName()) == seam.Method {
		c.Code = "method"
	}
	var err error
	c.Holds, c.Message, err = seam.Request{Headers: s.headers}.CheckHeader(m)
	return c, err
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
		matches, told, err := seam.Matches(spec.StringMatch, value)
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

// checkPort compares the port of the listener.
func (s subject) checkPort(m *matcherv3.FilterStateMatcher) (Check, error) {
	holds, told, err := seam.Matches(m.GetStringMatch(), strconv.FormatUint(uint64(s.port), 10))
	return Check{"port", holds, fmt.Sprintf("the request comes at port %d; it must be %s", s.port, told)}, err
}

func firstParameter(query, name string) (value string, there bool) {
	for pair := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		if n, v, _ := strings.Cut(pair, "="); pair != "" && n == name {
			return v, true
		}
	}
	return "", false
}

// fromLatin1 is the inverse of latin1.
func fromLatin1(s string) string {
	out := make([]byte, 0, len(s))
	for _, c := range s {
		out = append(out, byte(c)) //nolint:gosec // latin1 made it from a byte
	}
	return string(out)
}
